//! Which session of a client has which TTL, and which ones take no new locks.

use std::{
    collections::HashMap,
    sync::{Arc, Weak},
    time::Duration,
};

use futures_util::future::{BoxFuture, Shared};
use lock_core::{Error, Result, duration::shown};
use zookeeper_client::Error as ZkError;

use crate::session::Session;

/// More distinct TTLs than any program has reason for; each costs a connection and a renewal.
const MOST_SESSIONS: usize = 8;

/// The sessions of a client.
#[derive(Debug, Default)]
pub(super) struct Slots {
    pub(super) closed: bool,
    pub(super) by_ttl: HashMap<Duration, Slot>,
    /// Those that take no new locks, and end with their last one.
    pub(super) retired: Vec<Weak<Session>>,
}

/// The session of a TTL.
#[derive(Debug)]
pub(super) enum Slot {
    Open(Arc<Session>),
    /// Everybody who asks meanwhile waits for the same answer.
    Opening(Opening),
}

pub(super) type Opening = Shared<BoxFuture<'static, Result<Arc<Session>, ZkError>>>;

impl Slot {
    pub(super) fn open(self) -> Option<Arc<Session>> {
        match self {
            Self::Open(session) => Some(session),
            Self::Opening(_) => None,
        }
    }

    /// Whether nobody uses it: no lease, no attempt.
    fn is_idle(&self) -> bool {
        matches!(self, Self::Open(session) if session.is_over() || Arc::strong_count(session) == 1)
    }
}

impl Slots {
    /// Gives no new locks to a session: it ends when its last lock is released.
    pub(super) fn retire(&mut self, session: &Arc<Session>) {
        self.retire_if(session.ttl(), |open| Arc::ptr_eq(open, session));
    }

    /// Gives no new locks to the open session of this TTL if this is so of it.
    pub(super) fn retire_if(&mut self, ttl: Duration, is_so: impl Fn(&Arc<Session>) -> bool) {
        let Some(Slot::Open(session)) = self.by_ttl.get(&ttl) else { return };
        if is_so(session) {
            let retired = Arc::downgrade(session);
            self.by_ttl.remove(&ttl);
            self.retired.retain(|other| other.strong_count() > 0);
            self.retired.push(retired);
        }
    }

    /// Drops a session that nobody uses if there are too many.
    pub(super) fn make_room(&mut self, ttl: Duration) -> Result<()> {
        if self.by_ttl.len() < MOST_SESSIONS || self.by_ttl.contains_key(&ttl) {
            return Ok(());
        }
        let idle = self.by_ttl.iter().find(|(_, slot)| slot.is_idle()).map(|(ttl, _)| *ttl);
        match idle.and_then(|idle| self.by_ttl.remove(&idle)) {
            Some(_) => Ok(()),
            None => Err(Error::InvalidOption {
                option: "ttl".to_owned(),
                value: shown(ttl).to_string(),
                allowed: format!(
                    "each TTL needs a session of its own, and {MOST_SESSIONS} others are in use; \
                     take one of theirs"
                ),
            }),
        }
    }
}
