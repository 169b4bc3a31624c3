//! Who stands in a queue.

use std::{
    fmt,
    time::{Duration, SystemTime},
};

use uuid::Uuid;

use crate::{
    FencingToken,
    duration::about,
    queue::{self, Kind},
    wall_clock,
};

/// One entry of a lock's queue: a holder, or a waiter.
#[derive(Clone, Debug, Eq, PartialEq)]
#[non_exhaustive]
pub struct Entry {
    /// The attempt that made the entry; `None` for a foreign client's entry.
    pub attempt: Option<Uuid>,
    /// What it asks for. A foreign client's entry counts as exclusive.
    pub kind: Kind,
    /// Whether it holds the lock; otherwise it waits.
    pub holds: bool,
    /// How long the entry still lives if nobody renews it, where the store shows that: etcd in
    /// whole seconds and for holders; Redis, the SQL stores and memory for all; ZooKeeper never.
    pub ttl_left: Option<Duration>,
    /// Who made it.
    pub holder: Holder,
}

impl Entry {
    /// An exclusive entry that waits, as a driver read it.
    pub fn new(attempt: Option<Uuid>, holder: Holder) -> Self {
        Self { attempt, kind: Kind::Exclusive, holds: false, ttl_left: None, holder }
    }

    /// The same entry of a kind.
    pub fn with_kind(self, kind: Kind) -> Self {
        Self { kind, ..self }
    }

    /// The same entry with this much time left.
    pub fn with_ttl_left(self, left: Duration) -> Self {
        Self { ttl_left: Some(left), ..self }
    }

    /// The same entry as a holder's.
    pub fn holding(self) -> Self {
        Self { holds: true, ..self }
    }

    /// Finds out who of a whole queue in order holds the lock, by the
    /// [queue rule](crate::queue).
    pub fn judge(queue: &mut [Self]) {
        let holders = queue::admitted(queue.iter().map(|entry| entry.kind));
        queue.iter_mut().take(holders).for_each(|entry| entry.holds = true);
    }
}

/// Who holds a lock, or waits for it, as far as the store can tell.
#[derive(Clone, Debug, Default, Eq, PartialEq)]
#[non_exhaustive]
pub struct Holder {
    /// What the holder said about itself. `None` for a foreign client.
    pub description: Option<String>,
    /// Since when, by the wall clock of whoever wrote it down. etcd, ZooKeeper and the SQL stores
    /// know when the entry joined the queue; Redis and memory know when the lock was granted.
    pub since: Option<SystemTime>,
    /// The grant's token, where the store shows it.
    pub token: Option<FencingToken>,
}

impl Holder {
    /// A holder of which the store knows this much.
    pub fn new(
        description: Option<String>,
        since: Option<SystemTime>,
        token: Option<FencingToken>,
    ) -> Self {
        Self { description, since, token }
    }
}

impl fmt::Display for Holder {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.description.as_deref().unwrap_or("a foreign client"))?;
        if let Some(age) = self.since.and_then(|since| wall_clock().duration_since(since).ok()) {
            write!(f, " for {}", about(age))?;
        }
        match self.token {
            Some(token) => write!(f, " with token {token}"),
            None => Ok(()),
        }
    }
}
