//! How a check ends.

/// Why a check failed.
pub type Failure = Box<dyn std::error::Error + Send + Sync>;

/// What did not happen in time, although no property promises it: the store hangs, or is too slow
/// for the check.
#[derive(Clone, Debug, thiserror::Error)]
#[error("{0}")]
pub struct Late(pub String);

/// What a property promises and did not happen: a grant, a loss in time, a lock that lasts. The
/// promise is broken, unless the store was out of reach meanwhile. No outage excuses the failures
/// of other types.
#[derive(Clone, Debug, thiserror::Error)]
#[error("{0}")]
pub struct Missed(pub String);

/// How a check ended.
pub type Checked = Result<Outcome, Failure>;

/// A check that did not fail.
#[derive(Clone, Debug, Eq, PartialEq)]
#[non_exhaustive]
pub enum Outcome {
    /// The store keeps the promise.
    Kept,
    /// The store does not make the promise, or the harness cannot try it; the text says so in its
    /// words.
    Skipped(String),
}
