//! The ends of a connection.

use std::{fmt, sync::Arc};

/// What closed a connection.
#[derive(Clone, Debug, Eq, PartialEq)]
#[non_exhaustive]
pub enum ClosedBy {
    /// This program, by [`Locks::close`](crate::Locks::close).
    Program,
    /// This program, by [`Locks::drain`](crate::Locks::drain): nothing new may be acquired.
    Drain,
    /// The end of the tokio runtime that connected, with a description of it. A connection lives in
    /// that runtime, see [`Locks`](crate::Locks#runtimes). Held locks are free after their TTL.
    Runtime(Arc<str>),
    /// A `fork`: this process is not the one that connected. Connect in each process.
    Fork,
}

impl fmt::Display for ClosedBy {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Program => Ok(()),
            Self::Drain => {
                f.write_str(": it is being drained, and this program acquires nothing more")
            }
            Self::Fork => f.write_str(
                ": it belongs to the process from which this one was forked; connect in each process",
            ),
            Self::Runtime(runtime) => write!(
                f,
                ": the tokio runtime that connected has ended ({runtime}); connect once in each \
                 runtime (once in each test), or in one that lives as long as the connection"
            ),
        }
    }
}
