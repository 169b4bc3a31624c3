//! What stands in one line.

use std::{collections::BTreeMap, fmt, sync::Arc};

use serde::{Deserialize, Serialize};

use crate::attempt::seconds;

/// The first line: which run this is.
#[derive(Clone, Debug, Eq, PartialEq, Serialize, Deserialize)]
pub struct Header {
    /// The version of the format.
    pub history: u32,
    /// What ran.
    pub run: String,
    /// The seed that plays the run again.
    pub seed: u64,
    /// The store.
    pub store: String,
    /// The versions of servers and clients, by their names.
    #[serde(default)]
    pub versions: BTreeMap<String, String>,
}

impl Header {
    /// The version that this crate writes and reads.
    pub const VERSION: u32 = 1;

    /// A header of this version, without versions of others.
    pub fn new(run: impl Into<String>, seed: u64, store: impl Into<String>) -> Self {
        let (run, store) = (run.into(), store.into());
        Self { history: Self::VERSION, run, seed, store, versions: BTreeMap::new() }
    }
}

/// One thing that a client did or believed.
#[derive(Clone, Debug, Eq, PartialEq, Serialize, Deserialize)]
pub struct Event {
    /// When, in nanoseconds.
    pub at: u64,
    /// Which client.
    pub client: Arc<str>,
    /// Which of the client's attempts.
    pub attempt: u64,
    /// What.
    #[serde(flatten)]
    pub what: What,
}

/// What happened to an attempt to get a lock.
#[derive(Clone, Debug, Eq, PartialEq, Serialize, Deserialize)]
#[serde(tag = "event", rename_all = "snake_case")]
#[non_exhaustive]
pub enum What {
    /// The client asks for the lock. The first event of each attempt; the time is from before.
    Asked {
        /// The lock's name.
        name: Arc<str>,
        /// What of it.
        #[serde(flatten)]
        kind: Kind,
    },
    /// The client has the lock.
    Granted {
        /// The fencing token, if the store gives one.
        #[serde(default)]
        token: Option<u64>,
    },
    /// The client's own reckoning said that it still holds the lock. The time is from before.
    Valid,
    /// The client's own reckoning said that it does not hold the lock any more.
    Invalid,
    /// The client was told that it has lost the lock.
    Lost {
        /// Whose word it was.
        loss: Loss,
        /// The reason, for people.
        reason: Arc<str>,
    },
    /// The client begins to release the lock. The time is from before.
    Releasing,
    /// The store has confirmed the release.
    Released,
    /// The attempt is over in another way: given up, dropped, failed, its process killed.
    Ended {
        /// How, for people.
        why: Arc<str>,
    },
    /// An operator took the lock away. The time is from before.
    Revoked,
    /// The protected resource took a write. The time is from while it did.
    Wrote {
        /// The token that came with it.
        token: u64,
    },
    /// The protected resource refused a write.
    Rejected {
        /// The token that came with it.
        token: u64,
    },
}

/// What of a lock is asked for.
#[derive(Clone, Copy, Debug, Eq, Ord, PartialEq, PartialOrd, Serialize, Deserialize)]
#[serde(tag = "kind", rename_all = "snake_case")]
pub enum Kind {
    /// Alone.
    Exclusive,
    /// Together with other readers.
    Shared,
    /// Some of a limited number.
    Permits {
        /// How many.
        permits: u32,
        /// Of how many.
        limit: u32,
    },
}

impl Kind {
    /// Whether one hold of each kind, on the same name, may not be at the same time, whatever the
    /// numbers of permits are.
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

/// Who says that a lock is lost.
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
    /// What it hit: a node, a client, a path between two.
    pub target: String,
    /// When it began, in nanoseconds.
    pub from: u64,
    /// When it was healed, in nanoseconds; `None` if it was not.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub until: Option<u64>,
}

impl Fault {
    /// The kind of a fault that nobody plays: the client's process did not get the processor, so
    /// what it was told, it was told late. The target is the client.
    pub const STANDSTILL: &str = "standstill";
}

impl fmt::Display for Fault {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { fault, target, from, until } = self;
        write!(f, "{fault} of {target} from {}", seconds(*from))?;
        until.iter().try_for_each(|until| write!(f, " until {}", seconds(*until)))
    }
}
