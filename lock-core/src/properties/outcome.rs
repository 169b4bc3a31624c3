//! The outcome of a check.

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
