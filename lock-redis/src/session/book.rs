//! What a client holds and waits for, and when each of these is due for renewal.

use std::{
    collections::{BTreeMap, BTreeSet, HashMap},
    sync::Arc,
    time::Duration,
};

use lock_core::{Instant, Result};
use uuid::Uuid;

use super::attempt::Entry;
use crate::{error, wire::clock::CLOCK};

/// Waiters that want to ask at about the same time ask together.
const TOGETHER: Duration = Duration::from_millis(5);

/// Everything that a client holds and waits for, and when it is due.
#[derive(Debug, Default)]
pub(super) struct Book {
    entries: HashMap<Uuid, Arc<Entry>>,
    /// Per TTL, when its entries are due.
    groups: BTreeMap<Duration, Instant>,
    /// Waiting entries that want to ask before their group does.
    asks: BTreeSet<(Instant, Uuid)>,
    closed: bool,
}

impl Book {
    /// Answers whether something is due earlier than before.
    ///
    /// # Errors
    ///
    /// [`Error::Closed`](lock_core::Error::Closed).
    pub(super) fn enter(&mut self, entry: &Arc<Entry>) -> Result<bool> {
        if self.closed {
            return Err(error::closed());
        }
        self.entries.insert(entry.ticket.attempt, entry.clone());
        // A group outlives its entries until it is due, so that short holds do not set it up anew.
        let mut earlier = false;
        self.groups.entry(entry.ttl).or_insert_with(|| {
            earlier = true;
            CLOCK.now() + entry.period
        });
        Ok(earlier)
    }

    pub(super) fn forget(&mut self, entry: &Entry) {
        self.entries.remove(&entry.ticket.attempt);
    }

    pub(super) fn find(&self, attempt: Uuid) -> Option<Arc<Entry>> {
        self.entries.get(&attempt).cloned()
    }

    pub(super) fn ask(&mut self, entry: &Entry, at: Instant) {
        self.asks.insert((at, entry.ticket.attempt));
    }

    /// After a reconnect: what was renewed meanwhile, and what was pushed, is not known.
    pub(super) fn everything_is_due(&mut self) {
        let now = CLOCK.now();
        self.groups.values_mut().for_each(|due| *due = now);
    }

    /// After a failed round.
    pub(super) fn try_soon(&mut self) {
        let now = CLOCK.now();
        for (ttl, due) in &mut self.groups {
            *due = (*due).min(now + *ttl / 10);
        }
    }

    pub(super) fn all(&self) -> Vec<Arc<Entry>> {
        self.entries.values().cloned().collect()
    }

    /// Refuses new entries and hands out those that are there.
    pub(super) fn close(&mut self) -> Vec<Arc<Entry>> {
        self.closed = true;
        self.all()
    }

    pub(super) fn next_due(&self) -> Instant {
        let ask = self.asks.first().map(|(at, _)| *at);
        self.groups.values().copied().chain(ask).min().unwrap_or(Instant::NEVER)
    }

    /// Takes out what is due now.
    pub(super) fn take_due(&mut self, now: Instant) -> Vec<Arc<Entry>> {
        let due: BTreeSet<_> =
            self.groups.iter().filter(|(_, at)| **at <= now).map(|(ttl, _)| *ttl).collect();
        let mut taken = Vec::new();
        if !due.is_empty() {
            let of_group = |entry: &&Arc<Entry>| due.contains(&entry.ttl);
            taken.extend(self.entries.values().filter(of_group).cloned());
        }
        for ttl in &due {
            match taken.iter().find(|entry| entry.ttl == *ttl) {
                Some(entry) => self.groups.insert(*ttl, now + entry.period),
                None => self.groups.remove(ttl),
            };
        }
        while let Some((at, attempt)) = self.asks.pop_first() {
            if at > now + TOGETHER {
                self.asks.insert((at, attempt));
                break;
            }
            let asking = self.entries.get(&attempt).filter(|entry| entry.asks_at(at));
            taken.extend(asking.filter(|entry| !due.contains(&entry.ttl)).cloned());
        }
        taken
    }
}
