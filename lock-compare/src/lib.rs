//! Tests the claims of articles about distributed locks on real stores.
//!
//! Five articles compare locks on Redis, etcd, ZooKeeper and MySQL. They make 44 [`Claim`]s. Each
//! claim has an [`Experiment`] in its own file below `claims`. It is played on every [`Store`] that
//! can take part, and ends in a [`Verdict`] with its evidence. [`run`] plays all of them and makes
//! a [`Report`].
//!
//! Servers are private: `distlock-lab` starts the ones that are installed. The report names the missing
//! ones, and how to install them.

mod actor;
mod advice;
mod bare;
mod claim;
pub mod claims;
mod cluster;
mod connect;
mod contestant;
pub mod docs;
mod endless;
#[cfg(feature = "etcd")]
mod etcdctl;
mod experiment;
mod failure;
#[cfg(feature = "etcd")]
mod go_mutex;
mod ground;
mod html;
mod isolation;
mod keys;
mod outcome;
mod plot;
mod printed;
mod printed_queue;
mod program;
mod redlock;
mod report;
mod residue;
mod rounds;
mod run;
mod scenario;
mod stage;
mod store;
mod terminal;
mod time;
mod timeline;
mod trace;
mod verdict;
mod waiters;
mod words;

pub(crate) use self::{
    actor::{Actor, Pause},
    advice::{Advice, Choice},
    contestant::{Contestant, Distlock, Granted, Hold, Player},
    failure::Missing,
    ground::Ground,
    keys::{KeySpace, Keys},
    outcome::{Figure, Nature, Outcome, Side},
    printed::{Give, Printed, Take},
    printed_queue::PrintedQueue,
    report::ClaimText,
    stage::Stage,
    time::Time,
    trace::{Breakage, Entry, Scribe, Trace},
};
pub use self::{
    claim::Claim,
    experiment::Experiment,
    failure::Failure,
    html::html,
    outcome::TWO_MARKS,
    plot::{Plot, Topic},
    report::{Cell, Report, Row},
    run::{Options, Progress, run},
    stage::{Pace, Part},
    store::Store,
    verdict::Verdict,
};
pub use lock_report::{BarSeries, Drawing, Series, SpreadRow, State, Timeline};
