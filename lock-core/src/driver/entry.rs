//! The entries of a queue.

use std::{
    fmt,
    time::{Duration, SystemTime},
};

use uuid::Uuid;

use crate::{FencingToken, driver::duration::about, kind::Kind, queue, wall_clock};

/// One entry of a lock's queue: a holder, or a waiter.
#[derive(Clone, Debug, Eq, PartialEq)]
#[cfg_attr(feature = "serde", derive(serde::Serialize, serde::Deserialize))]
#[non_exhaustive]
pub struct Entry {
    /// The attempt that made the entry; `None` for a foreign client's.
    pub attempt: Option<Uuid>,
    /// The kind that it asks for. A foreign client's entry counts as exclusive.
    pub kind: Kind,
    /// Whether it holds the lock; otherwise it waits.
    pub holds: bool,
    /// How long the entry still lives without a renewal, where the store shows that: etcd in whole
    /// seconds and for holders; Redis, the SQL stores and memory for all; ZooKeeper never.
    pub ttl_left: Option<Duration>,
    /// The client that made it.
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

    /// Marks the holders in a whole queue in order, by the [queue rule](crate::queue).
    pub fn judge(queue: &mut [Self]) {
        let holders = queue::admitted(queue.iter().map(|entry| entry.kind));
        queue.iter_mut().take(holders).for_each(|entry| entry.holds = true);
    }
}

/// The client behind an entry, as far as the store can tell.
#[derive(Clone, Debug, Default, Eq, PartialEq)]
#[cfg_attr(feature = "serde", derive(serde::Serialize, serde::Deserialize))]
#[non_exhaustive]
pub struct Holder {
    /// The client's own description. `None` for a foreign client.
    pub description: Option<String>,
    /// When it joined the queue, by the wall clock of the process or server that wrote it. Redis
    /// forgets it with the grant.
    pub queued_at: Option<SystemTime>,
    /// When it was granted the lock, by the same clock, as exactly as the store can prove. `None`
    /// for a waiter, and where the store cannot tell; the latter says nothing about the time.
    ///
    /// | store | known |
    /// |---|---|
    /// | memory | always |
    /// | Redis | unless the token floor was raised above the time, as a token is the time of its grant; for a leader, unless this clock is a minute behind the server's |
    /// | etcd | if it got the lock at once, alone or together with others, as far as etcd's history reaches; for at most 16 holders, among the first 64 in the queue; not for a lock that was [adopted](crate::Locks::adopt) |
    /// | ZooKeeper | if it is alone in the queue, and no entry has come or gone since it joined; for permits that others have waited for |
    /// | SQL | if it got the lock at once; after a wait, from 250 ms after the grant on, so not for a leader that an observer sees earlier; not for clients older than this column, nor in their tables until the tables are altered |
    pub granted_at: Option<SystemTime>,
    /// The grant's token, where the store shows it.
    pub token: Option<FencingToken>,
}

impl Holder {
    /// A holder with these known facts.
    pub fn new(description: Option<String>, token: Option<FencingToken>) -> Self {
        Self { description, token, ..Self::default() }
    }

    /// The same holder, with the time when it joined the queue.
    pub fn queued(self, at: Option<SystemTime>) -> Self {
        Self { queued_at: at, ..self }
    }

    /// The same holder, with the time of its grant.
    pub fn granted(self, at: Option<SystemTime>) -> Self {
        Self { granted_at: at, ..self }
    }
}

impl fmt::Display for Entry {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let state = if self.holds { "holds" } else { "waits" };
        write!(f, "{}: {state}, {}", self.holder, self.kind)?;
        match self.ttl_left {
            Some(left) => write!(f, ", {} left", about(left)),
            None => Ok(()),
        }
    }
}

impl fmt::Display for Holder {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.description.as_deref().unwrap_or("a foreign client"))?;
        let now = wall_clock();
        let age = |since: Option<SystemTime>| now.duration_since(since?).ok();
        match (age(self.granted_at), age(self.queued_at)) {
            (Some(held), _) => write!(f, " for {}", about(held))?,
            // It may hold the lock for a moment only.
            (None, Some(queued)) => write!(f, " (queued {} ago)", about(queued))?,
            (None, None) => {}
        }
        match self.token {
            Some(token) => write!(f, " with token {token}"),
            None => Ok(()),
        }
    }
}
