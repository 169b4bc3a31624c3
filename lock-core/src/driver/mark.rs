//! The mark of work that is done for a period.

use std::{fmt, time::SystemTime};

use crate::{FencingToken, driver::duration::about, wall_clock};

/// The mark that a run has left under a lock's name when it succeeded: until its end, the work
/// counts as done. It is no entry of the queue; see [`Lock::once_per`](crate::Lock::once_per).
#[derive(Clone, Debug, Eq, PartialEq)]
#[cfg_attr(feature = "serde", derive(serde::Serialize, serde::Deserialize))]
#[non_exhaustive]
pub struct Mark {
    /// The host on which the work was done.
    pub host: String,
    /// The fencing token of the grant under which it was done.
    pub token: FencingToken,
    /// When the mark was written. Like the end it is for people: the store, or its driver, decides
    /// when the period is over.
    pub done_at: SystemTime,
    /// The end of the period, which counts from the grant.
    pub ends_at: SystemTime,
}

impl Mark {
    /// A mark as a driver read it.
    pub fn new(
        host: impl Into<String>,
        token: FencingToken,
        done_at: SystemTime,
        ends_at: SystemTime,
    ) -> Self {
        Self { host: host.into(), token, done_at, ends_at }
    }
}

impl fmt::Display for Mark {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let now = wall_clock();
        let ago = now.duration_since(self.done_at).unwrap_or_default();
        let left = self.ends_at.duration_since(now).unwrap_or_default();
        let (ago, left) = (about(ago), about(left));
        write!(f, "done on {} {ago} ago with token {}, for {left} more", self.host, self.token)
    }
}
