//! The contents of one line.

use std::{collections::BTreeMap, fmt, sync::Arc};

use serde::{Deserialize, Serialize};

/// The first line: it describes the run.
#[derive(Clone, Debug, Eq, PartialEq, Serialize, Deserialize)]
pub struct Header {
    /// The version of the format.
    pub history: u32,
    /// Name of the run.
    pub run: String,
    /// Seed that replays the run.
    pub seed: u64,
    /// The store.
    pub store: String,
    /// Versions of servers and clients, by name.
    #[serde(default)]
    pub versions: BTreeMap<String, String>,
}

impl Header {
    /// The version that this crate writes and reads.
    pub const VERSION: u32 = 1;

    /// A header of this version of the format, without the versions of servers and clients.
    pub fn new(run: impl Into<String>, seed: u64, store: impl Into<String>) -> Self {
        let (run, store) = (run.into(), store.into());
        Self { history: Self::VERSION, run, seed, store, versions: BTreeMap::new() }
    }
}

/// One action or belief of a client.
#[derive(Clone, Debug, Eq, PartialEq, Serialize, Deserialize)]
pub struct Event {
    /// Time in nanoseconds.
    pub at: u64,
    /// The client.
    pub client: Arc<str>,
    /// The client's attempt.
    pub attempt: u64,
    /// The action or belief.
    #[serde(flatten)]
    pub what: What,
}

/// An event of an attempt to get a lock.
#[derive(Clone, Debug, Eq, PartialEq, Serialize, Deserialize)]
#[serde(tag = "event", rename_all = "snake_case")]
#[non_exhaustive]
pub enum What {
    /// The client asks for the lock. First event of each attempt. The time is taken before the
    /// request.
    Asked {
        /// The lock's name.
        name: Arc<str>,
        /// The kind of lock.
        #[serde(flatten)]
        kind: Kind,
    },
    /// The client has the lock.
    Granted {
        /// The fencing token, if the store gives one.
        #[serde(default)]
        token: Option<u64>,
    },
    /// The client's own calculation said that it still holds the lock. The time is taken before the
    /// check.
    Valid,
    /// The client's own calculation said that it no longer holds the lock.
    Invalid,
    /// The client was told that it has lost the lock.
    Lost {
        /// The source of the report.
        loss: Loss,
        /// The reason, for people.
        reason: Arc<str>,
    },
    /// The client begins to release the lock. The time is taken before the request.
    Releasing,
    /// The store has confirmed the release.
    Released,
    /// The attempt is over in another way: given up, dropped, failed, its process killed.
    Ended {
        /// How, for people.
        why: Arc<str>,
    },
    /// An operator took the lock away. The time is taken before the request.
    Revoked,
    /// The protected resource accepted a write. The time is taken during the write.
    Wrote {
        /// The token of the write.
        token: u64,
    },
    /// The protected resource refused a write.
    Rejected {
        /// The token of the write.
        token: u64,
    },
}

/// The requested kind of lock.
#[derive(Clone, Copy, Debug, Eq, Ord, PartialEq, PartialOrd, Serialize, Deserialize)]
#[serde(tag = "kind", rename_all = "snake_case")]
pub enum Kind {
    /// Exclusive.
    Exclusive,
    /// Shared with other readers.
    Shared,
    /// Some permits of a limited number.
    Permits {
        /// Number of permits.
        permits: u32,
        /// Limit of the semaphore.
        limit: u32,
    },
}

impl Kind {
    /// Whether holds of these two kinds on the same name must not overlap. Ignores the numbers of
    /// permits.
    pub fn excludes(self, other: Self) -> bool {
        !matches!(
            (self, other),
            (Self::Shared, Self::Shared) | (Self::Permits { .. }, Self::Permits { .. })
        )
    }
}

impl fmt::Display for Kind {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Exclusive => f.write_str("exclusive"),
            Self::Shared => f.write_str("shared"),
            Self::Permits { permits, limit } => write!(f, "{permits} of {limit} permits"),
        }
    }
}

/// The source of a report that a lock is lost.
#[derive(Clone, Copy, Debug, Eq, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Loss {
    /// The client's own deadline passed.
    Deadline,
    /// The store ended it: a revoke, a deleted entry, an ended session.
    Store,
}

/// A fault that was played.
#[derive(Clone, Debug, Eq, PartialEq, Serialize, Deserialize)]
pub struct Fault {
    /// Its kind: `kill`, `stop`, `cut` ..
    pub fault: String,
    /// Its target: a node, a client, a path between two.
    pub target: String,
    /// When it began, in nanoseconds.
    pub from: u64,
    /// When it was healed, in nanoseconds; `None` if it was not.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub until: Option<u64>,
}

impl Fault {
    /// A fault that is observed, not injected: the client's process did not get the processor, so
    /// it got its reports late. The target is the client.
    pub const STANDSTILL: &str = "standstill";
}

impl fmt::Display for Fault {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { fault, target, from, until } = self;
        write!(f, "{fault} of {target} from {}", seconds(*from))?;
        until.iter().try_for_each(|until| write!(f, " until {}", seconds(*until)))
    }
}

/// A time, for people.
pub(crate) fn seconds(nanos: u64) -> String {
    format!("{}.{:06} s", nanos / 1_000_000_000, nanos % 1_000_000_000 / 1000)
}
