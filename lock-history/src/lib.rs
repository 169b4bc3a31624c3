//! What clients of a lock did and believed, in one format, and a checker of it.
//!
//! A [`Recorder`] takes the events of many clients. A [`History`] is what it took, with a
//! [`Header`] and the [`Fault`]s that were played meanwhile; it is written and read as JSON lines.
//! A [`Checker`] tells what in it breaks a promise of locks.
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
//! This crate reads no clock: the caller hands each event its time. Several processes of one
//! machine can share its boot clock.
//!
//! # What is certain
//!
//! A client may be told late or answered late, so an event has a side on which its time must err:
//! the time of a question is taken *before* it is put (asked, releasing, the answer of
//! `is_valid()`), the time of an answer *after* it is there (granted, released, lost). Then a lock
//! is held from [`Attempt::granted`] to [`Attempt::sure_until`] whatever the delays were, and two
//! such holds that exclude each other never overlap.
//!
//! # The lines (version 1)
//!
//! | line | fields |
//! |---|---|
//! | header, the first | `history` (the version), `run`, `seed`, `store`, `versions` |
//! | event | `at`, `client`, `attempt` (a number, unique per client), `event` and its own fields, see [`What`] |
//! | fault | `fault` (its kind), `target`, `from`, `until` (absent if it was not ended) |
//!
//! A reader ignores fields that it does not know, and refuses another version.

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
