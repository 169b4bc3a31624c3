//! Benchmarks of locks: `distlock bench` and `cargo bench -p distlock-bench`.
//!
//! A [`Preset`] is a [`Workload`] with the sentence what it models. [`run()`] plays it on every
//! store, with distlock and, beside it and in turns, with other [contenders](Role): two floors
//! of the bare client, and the store's usual way. Each round is a list of [`Turn`]s; all figures of
//! a [`Report`] are computed from them.

mod against;
mod child;
mod clock;
mod columns;
mod compute;
mod consent;
mod contender;
mod cores;
mod counted;
mod cpu;
mod crash;
mod crew;
pub mod docs;
mod exclusion;
mod failure;
mod figures;
mod fleet;
mod html;
mod job;
mod leader;
mod options;
mod pace;
mod place;
mod preset;
mod report;
mod round;
mod run;
mod stage;
mod stand;
mod sweep;
mod table;
mod target;
mod turn;
mod words;
mod workload;

pub use self::{
    against::{Change, Comparison, against},
    child::child,
    consent::{Impact, impact},
    contender::Role,
    failure::{Failure, Violated},
    figures::{Fairness, Figures, Quantiles, Rounds},
    html::html,
    options::{Options, Progress},
    preset::Preset,
    report::{Ratio, Report, Row, Section, Sweep, SweepPoint},
    run::run,
    table::table,
    turn::Turn,
    workload::{Kind, Workload},
};
