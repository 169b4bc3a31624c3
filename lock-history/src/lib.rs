//! A format for the actions and beliefs of a lock's clients, and a checker of it.
//!
//! A [`Recorder`] takes the events of many clients. A [`History`] consists of these events, a
//! [`Header`], and the [`Fault`]s that were played meanwhile. It is written and read as JSON lines.
//! A [`Checker`] finds broken promises in it.
//!
//! ```
//! use lock_history::{Checker, Header, Kind, Recorder, Rule};
//!
//! let recorder = Recorder::default();
//! let (a, b) = (recorder.client("a"), recorder.client("b"));
//! let first = a.asked(0, "orders/42", Kind::Exclusive);
//! first.granted(10, Some(7));
//! let second = b.asked(5, "orders/42", Kind::Exclusive);
//! second.granted(20, Some(8)); // while `a` holds it
//! first.valid(30, true);
//! second.valid(31, true);
//!
//! let history = recorder.history(Header::new("example", 1, "broken"));
//! let report = Checker::new().check(&history)?;
//! assert_eq!(report.violations[0].rule(), Rule::Exclusion);
//! # Ok::<(), lock_history::Misfit>(())
//! ```
//!
//! # The clock
//!
//! All times of a history are nanoseconds on one clock that never goes back, from the same origin.
//! This crate reads no clock: the caller passes the time of each event. Several processes of one
//! machine can share its boot clock.
//!
//! # What is certain
//!
//! A client may get news or replies late, so the time of each event must err on a fixed side. The
//! time of a question is taken *before* it is sent (asked, releasing, the result of `is_valid()`).
//! The time of a reply is taken *after* it has arrived (granted, released, lost). Then a lock is
//! held from [`Attempt::granted`] to [`Attempt::sure_until`], regardless of delays. Two such holds
//! that exclude each other never overlap.
//!
//! # The lines (version 1)
//!
//! | line | fields |
//! |---|---|
//! | header, the first | `history` (the version), `run`, `seed`, `store`, `versions` |
//! | event | `at`, `client`, `attempt` (a number, unique per client), `event` and its own fields, see [`What`] |
//! | fault | `fault` (its kind), `target`, `from`, `until` (absent if it was not ended) |
//!
//! A reader ignores unknown fields, and refuses another version.

mod attempt;
mod check;
mod history;
mod line;
mod recorder;
mod report;
mod violation;

pub use crate::{
    attempt::{Attempt, Lost, Misfit, Write},
    check::{Checker, Grade},
    history::{FormatError, History},
    line::{Event, Fault, Header, Kind, Loss, What},
    recorder::{AttemptLog, ClientLog, Recorder},
    report::{Class, Classed, Report, Summary},
    violation::{Rule, Violation},
};
