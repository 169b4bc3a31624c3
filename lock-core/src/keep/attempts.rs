//! All attempts of a client, and when each is due for renewal.
//!
//! Attempts with one TTL are renewed together: one request for all, one period after the last one.

use std::{
    collections::{BTreeMap, BTreeSet, HashMap},
    ops::Deref,
    sync::Arc,
    time::Duration,
};

use uuid::Uuid;

use crate::{
    Instant,
    keep::{attempt::Progress, renewal::RETRIES_PER_TTL},
};

/// The attempts of a client that hold or wait.
#[derive(Debug)]
pub struct Attempts<T> {
    /// Each with how many came before it.
    attempts: HashMap<Uuid, (u64, Arc<T>)>,
    entered: u64,
    /// Per TTL, when its attempts are due.
    groups: BTreeMap<Duration, Instant>,
    closed: bool,
}

impl<T> Default for Attempts<T> {
    fn default() -> Self {
        Self { attempts: HashMap::new(), entered: 0, groups: BTreeMap::new(), closed: false }
    }
}

impl<T: Deref<Target = Progress<A, W, H>>, A, W, H> Attempts<T> {
    /// Adds an attempt at `now`. Returns whether a renewal is due earlier than before; `None` if
    /// the client is closed.
    pub fn enter(&mut self, attempt: &Arc<T>, now: Instant) -> Option<bool> {
        if self.closed {
            return None;
        }
        self.attempts.insert(attempt.id, (self.entered, attempt.clone()));
        self.entered += 1;
        // A group outlives its attempts until it is due, so that short holds do not set it up anew.
        let mut earlier = false;
        self.groups.entry(attempt.ttl).or_insert_with(|| {
            earlier = true;
            now + attempt.period
        });
        Some(earlier)
    }

    /// Removes an attempt.
    pub fn forget(&mut self, attempt: &T) {
        self.attempts.remove(&attempt.id);
    }

    /// The attempt with this identity, if it is one of these.
    pub fn find(&self, attempt: Uuid) -> Option<&Arc<T>> {
        self.attempts.get(&attempt).map(|(_, attempt)| attempt)
    }

    /// All attempts, in no order.
    pub fn all(&self) -> impl Iterator<Item = &Arc<T>> {
        self.attempts.values().map(|(_, attempt)| attempt)
    }

    /// After a reconnect: makes all attempts due, as earlier renewals may be lost.
    pub fn all_due(&mut self, now: Instant) {
        self.groups.values_mut().for_each(|due| *due = now);
    }

    /// After a failed renewal: see [`RETRIES_PER_TTL`].
    pub fn try_soon(&mut self, now: Instant) {
        for (ttl, due) in &mut self.groups {
            *due = (*due).min(now + *ttl / RETRIES_PER_TTL);
        }
    }

    /// Refuses new attempts, renews none any more, and returns the present ones, in the order in
    /// which they came.
    pub fn close(&mut self) -> Vec<Arc<T>> {
        self.closed = true;
        self.groups.clear();
        let in_order: BTreeMap<_, _> = self.attempts.values().cloned().collect();
        in_order.into_values().collect()
    }

    /// Whether it refuses new attempts.
    pub fn is_closed(&self) -> bool {
        self.closed
    }

    /// When the next renewal is due; [`Instant::NEVER`] if none is.
    pub fn next_due(&self) -> Instant {
        self.groups.values().copied().min().unwrap_or(Instant::NEVER)
    }

    /// The attempts that are due at `now`: see [`reschedule`](Self::reschedule).
    pub fn reschedule_due(&mut self, now: Instant) -> Vec<Arc<T>> {
        self.reschedule(&self.groups_due(now), now)
    }

    /// The TTLs that are due at `now`.
    pub fn groups_due(&self, now: Instant) -> BTreeSet<Duration> {
        self.groups.iter().filter(|(_, at)| **at <= now).map(|(ttl, _)| *ttl).collect()
    }

    /// Returns the attempts with these TTLs. They are due again a period after `now`; a TTL without
    /// attempts is forgotten.
    pub fn reschedule(&mut self, due: &BTreeSet<Duration>, now: Instant) -> Vec<Arc<T>> {
        if due.is_empty() {
            return Vec::new();
        }
        let of_group = |attempt: &&Arc<T>| due.contains(&attempt.ttl);
        let found: Vec<_> = self.all().filter(of_group).cloned().collect();
        for ttl in due {
            match found.iter().find(|attempt| attempt.ttl == *ttl) {
                Some(attempt) => self.groups.insert(*ttl, now + attempt.period),
                None => self.groups.remove(ttl),
            };
        }
        found
    }
}

#[cfg(test)]
mod tests;
