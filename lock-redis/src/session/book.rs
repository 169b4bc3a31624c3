//! What a client holds and waits for, and when each of these is due for renewal.

use std::{
    collections::{BTreeMap, BTreeSet, HashMap},
    sync::Arc,
    time::Duration,
};

use lock_core::{Instant, Result};
use uuid::Uuid;

use super::attempt::Attempt;
use crate::{error, wire::clock::CLOCK};

/// Waiters that want to ask at about the same time ask together.
const TOGETHER: Duration = Duration::from_millis(5);

/// Everything that a client holds and waits for, and when it is due.
#[derive(Debug, Default)]
pub(super) struct Book {
    attempts: HashMap<Uuid, Arc<Attempt>>,
    /// Per TTL, when its attempts are due.
    groups: BTreeMap<Duration, Instant>,
    /// Waiting attempts that want to ask before their group does.
    asks: BTreeSet<(Instant, Uuid)>,
    closed: bool,
}

impl Book {
    /// Answers whether something is due earlier than before.
    ///
    /// # Errors
    ///
    /// [`Error::Closed`](lock_core::Error::Closed).
    pub(super) fn enter(&mut self, attempt: &Arc<Attempt>) -> Result<bool> {
        if self.closed {
            return Err(error::closed());
        }
        self.attempts.insert(attempt.ticket.attempt, attempt.clone());
        // A group outlives its attempts until it is due, so that short holds do not set it up anew.
        let mut earlier = false;
        self.groups.entry(attempt.ttl).or_insert_with(|| {
            earlier = true;
            CLOCK.now() + attempt.period
        });
        Ok(earlier)
    }

    pub(super) fn forget(&mut self, attempt: &Attempt) {
        self.attempts.remove(&attempt.ticket.attempt);
    }

    pub(super) fn find(&self, id: Uuid) -> Option<Arc<Attempt>> {
        self.attempts.get(&id).cloned()
    }

    pub(super) fn ask(&mut self, attempt: &Attempt, at: Instant) {
        self.asks.insert((at, attempt.ticket.attempt));
    }

    /// After a reconnect: what was renewed meanwhile, and what was pushed, is not known.
    pub(super) fn everything_is_due(&mut self) {
        let now = CLOCK.now();
        self.groups.values_mut().for_each(|due| *due = now);
    }

    /// After a failed renewal.
    pub(super) fn try_soon(&mut self) {
        let now = CLOCK.now();
        for (ttl, due) in &mut self.groups {
            *due = (*due).min(now + *ttl / 10);
        }
    }

    pub(super) fn all(&self) -> Vec<Arc<Attempt>> {
        self.attempts.values().cloned().collect()
    }

    /// Refuses new attempts and hands out those that are there.
    pub(super) fn close(&mut self) -> Vec<Arc<Attempt>> {
        self.closed = true;
        self.all()
    }

    pub(super) fn next_due(&self) -> Instant {
        let ask = self.asks.first().map(|(at, _)| *at);
        self.groups.values().copied().chain(ask).min().unwrap_or(Instant::NEVER)
    }

    /// Takes out what is due now.
    pub(super) fn take_due(&mut self, now: Instant) -> Vec<Arc<Attempt>> {
        let due: BTreeSet<_> =
            self.groups.iter().filter(|(_, at)| **at <= now).map(|(ttl, _)| *ttl).collect();
        let mut taken = Vec::new();
        if !due.is_empty() {
            let of_group = |attempt: &&Arc<Attempt>| due.contains(&attempt.ttl);
            taken.extend(self.attempts.values().filter(of_group).cloned());
        }
        for ttl in &due {
            match taken.iter().find(|attempt| attempt.ttl == *ttl) {
                Some(attempt) => self.groups.insert(*ttl, now + attempt.period),
                None => self.groups.remove(ttl),
            };
        }
        while let Some((at, id)) = self.asks.pop_first() {
            if at > now + TOGETHER {
                self.asks.insert((at, id));
                break;
            }
            let asking = self.attempts.get(&id).filter(|attempt| attempt.asks_at(at));
            taken.extend(asking.filter(|attempt| !due.contains(&attempt.ttl)).cloned());
        }
        taken
    }
}
