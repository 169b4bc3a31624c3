//! Benchmarks of locks: `distlock bench` and `cargo bench -p lock-bench`.
//!
//! A [`Preset`] is a [`Workload`] with the sentence what it models. [`run`] plays it on every
//! [`Target`], with distlock and, beside it and in turns, with other [contenders](Role): two floors
//! of the bare client, and the store's usual way. Each round is a list of [`Turn`]s; all figures of
//! a [`Report`] are computed from them.

mod contender;
mod failure;
mod figures;
mod options;
mod preset;
mod report;
mod turn;
mod workload;

pub use self::{
    contender::Role,
    failure::Failure,
    figures::{Fairness, Figures, Quantiles, Rounds},
    options::{Options, Progress},
    preset::Preset,
    report::{Ratio, Report, Row, Section, Sweep, SweepPoint},
    turn::Turn,
    workload::{Kind, Workload},
};
