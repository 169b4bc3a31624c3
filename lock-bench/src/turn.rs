//! What one worker did once.

use serde::{Deserialize, Serialize};

/// One acquisition. All times are nanoseconds of this machine's boot clock, which all of its
/// processes share: `asked` and `releasing` are read before the request is sent, `granted` and
/// `released` after its answer.
#[derive(Clone, Copy, Debug, Default, Eq, PartialEq, Serialize, Deserialize)]
pub struct Turn {
    /// The worker's number, from 0 over all processes.
    pub worker: u32,
    /// The name's number.
    pub name: u32,
    /// Whether it took the lock together with others: as a reader, or one permit.
    pub shared: bool,
    /// When it was to ask. In a closed loop the same as `asked`.
    pub scheduled: u64,
    /// When it asked.
    pub asked: u64,
    /// When it knew that it holds the lock.
    pub granted: u64,
    /// When it began to release.
    pub releasing: u64,
    /// When it knew that the lock is released.
    pub released: u64,
    /// The fencing token, where the contender has one.
    pub token: Option<u64>,
}
