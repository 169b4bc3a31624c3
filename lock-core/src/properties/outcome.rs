//! The outcome of a check, and the macros to come to it.

/// Why a check failed.
pub type Failure = Box<dyn std::error::Error + Send + Sync>;

/// A call did not return in time, but no property promises that: the store hangs, or is too slow
/// for the check.
#[derive(Clone, Debug, thiserror::Error)]
#[error("{0}")]
pub struct Late(pub String);

/// A promised event did not happen: a grant, a loss in time, a lock that lasts. The promise is
/// broken, unless the store was out of reach meanwhile. An outage excuses no failure of another
/// type.
#[derive(Clone, Debug, thiserror::Error)]
#[error("{0}")]
pub struct Missed(pub String);

/// The error of a harness that cannot do what a check needs. The check is skipped, with this
/// reason.
#[derive(Clone, Debug, thiserror::Error)]
#[error("{0}")]
pub struct NotHere(pub String);

/// The result of a check.
pub type Checked = Result<Outcome, Failure>;

/// A check that did not fail.
#[derive(Clone, Debug, Eq, PartialEq)]
#[non_exhaustive]
pub enum Outcome {
    /// The store keeps the promise.
    Kept,
    /// The store does not make the promise, or the harness cannot try it; the text is the reason.
    Skipped(String),
}

/// The end of a scenario. One that the store does not promise, or the harness cannot play, ends with
/// [`NotHere`].
pub(super) type Done = Result<(), Failure>;

/// Skips a check, with the reason, unless the store makes the promise.
macro_rules! needs {
    ($condition:expr, $($message:tt)+) => {
        if !$condition {
            return Err(super::NotHere(format!($($message)+)).into());
        }
    };
}
pub(super) use needs;

/// Fails a check with a message unless a condition holds.
macro_rules! ensure {
    ($condition:expr, $($message:tt)+) => {
        if !$condition {
            return Err(format!($($message)+).into());
        }
    };
}
pub(super) use ensure;

/// Fails a check with [`Missed`] unless a condition holds.
macro_rules! keeps {
    ($condition:expr, $($message:tt)+) => {
        if !$condition {
            return Err(super::Missed(format!($($message)+)).into());
        }
    };
}
pub(super) use keeps;
