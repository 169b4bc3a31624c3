//! Why a run has no result.

use std::error::Error;

/// An error of any client, or a sentence.
pub type Failure = Box<dyn Error + Send + Sync>;

/// Two workers held a lock that excludes one of them. It ends the run.
#[derive(Clone, Debug, thiserror::Error)]
#[error("{what}: the lock does not exclude\n{timeline}")]
pub struct Violated {
    /// The store, the contender and the load.
    pub what: String,
    /// The holds that overlap, and those around them.
    pub timeline: String,
}
