//! A client's attempts, and when it looks at which queue.

use std::{collections::BTreeMap, sync::Arc, time::Duration};

use lock_core::{Clock, Instant, LockName, keep};

use crate::{
    layout::row::Row,
    queue::schedule::{Head, LIMIT, Look, TOGETHER, Why},
    session::attempt::Attempt,
};

/// Shortest time between two removals of rows that expired long ago.
const SWEEP: Duration = Duration::from_secs(60);

/// A client's attempts, and when it looks at which queue.
#[derive(Debug, Default)]
pub(crate) struct Book {
    pub(crate) attempts: keep::attempts::Attempts<Attempt>,
    queues: BTreeMap<LockName, Queue>,
    /// Number of changes that were reported.
    pub(crate) rings: u64,
    /// When another server had taken over, as of the last check of all that the client holds.
    pub(super) checked: Option<Instant>,
    swept: Instant,
}

/// A queue in which attempts of this client wait.
#[derive(Debug)]
struct Queue {
    waiting: Vec<Arc<Attempt>>,
    /// When to look at it, and why.
    look: Look,
}

/// A queue to look at now.
pub(crate) struct Looked {
    pub(crate) name: LockName,
    pub(crate) look: Look,
    pub(crate) waiting: Vec<Arc<Attempt>>,
}

impl Book {
    pub(crate) fn forget(&mut self, attempt: &Attempt) {
        self.attempts.forget(attempt);
        if let Some(queue) = self.queues.get_mut(&attempt.name) {
            queue.waiting.retain(|other| other.id != attempt.id);
            if queue.waiting.is_empty() {
                self.queues.remove(&attempt.name);
            }
        }
    }

    /// Refuses new attempts, and returns the present ones.
    pub(crate) fn close(&mut self) -> Vec<Arc<Attempt>> {
        self.queues.clear();
        self.attempts.close()
    }

    /// Whether it is time to remove rows that expired long ago.
    pub(super) fn sweeps(&mut self, now: Instant) -> bool {
        let is_time = now.since(self.swept) >= SWEEP;
        if is_time {
            self.swept = now;
        }
        is_time
    }

    /// Makes the attempts that wait in this queue look now. Returns whether there are any.
    pub(crate) fn ring(&mut self, name: &LockName) -> bool {
        self.rings += 1;
        let queue = self.queues.get_mut(name);
        queue.map(|queue| queue.look.ring()).is_some()
    }

    /// The token of this client's first waiting attempt in this queue.
    pub(crate) fn first_waiting(&self, name: &LockName) -> Option<u64> {
        self.queues.get(name)?.waiting.iter().filter_map(|attempt| attempt.waiting_token()).min()
    }

    /// A queue's holder, if it is the only one that is not in this client's book: when one of its
    /// own leaves, the queue rings, and of several nobody knows which leaves first.
    pub(crate) fn head(&self, name: &LockName, holders: &[Row]) -> Option<Head> {
        let is_foreign = |row: &&Row| self.attempts.find(row.attempt).is_none();
        let mut foreign = holders.iter().filter(is_foreign);
        let token = foreign.next()?.token;
        if foreign.next().is_some() {
            return None;
        }
        let known = self.queues.get(name).and_then(|queue| queue.look.head);
        let known = known.filter(|head| head.token == token);
        Some(known.unwrap_or_else(|| Head { token, since: Clock::Boot.now() }))
    }

    #[cfg(feature = "postgres")]
    pub(crate) fn ring_all(&mut self) {
        self.rings += 1;
        self.queues.values_mut().for_each(|queue| queue.look.ring());
    }

    /// Registers a waiting attempt. `rings` is the number of rings before it asked: a ring since
    /// then may have meant this queue. Returns whether a look is due earlier than before.
    pub(crate) fn wait(&mut self, attempt: &Arc<Attempt>, mut look: Look, rings: u64) -> bool {
        if self.attempts.find(attempt.id).is_none() {
            return false;
        }
        if self.rings != rings {
            (look.at, look.why) = (Instant::default(), Why::Rung);
        }
        let before = self.next_look();
        let queue = || Queue { waiting: Vec::new(), look };
        let queue = self.queues.entry(attempt.name.clone()).or_insert_with(queue);
        queue.waiting.push(attempt.clone());
        // Never later than a look that is due already.
        if look.at < queue.look.at {
            queue.look = Look { why: look.why.max(queue.look.why), ..look };
        }
        look.at < before
    }

    pub(crate) fn next_look(&self) -> Instant {
        self.queues.values().map(|queue| queue.look.at).min().unwrap_or(Instant::NEVER)
    }

    /// Returns the queues to look at now, with the attempts that wait in them. Each is looked at
    /// again if no answer comes.
    pub(crate) fn start_looks(&mut self, now: Instant) -> Vec<Looked> {
        let mut looked = Vec::new();
        self.queues.retain(|name, Queue { waiting, look }| {
            if look.at > now + TOGETHER {
                return true;
            }
            waiting.retain(|attempt| attempt.is_waiting());
            if !waiting.is_empty() {
                looked.push(Looked { name: name.clone(), look: *look, waiting: waiting.clone() });
                // The look stays scheduled until the answer, so that no ring gets lost.
                *look = Look { at: now + LIMIT * 2, why: Why::Pace, ..*look };
            }
            !waiting.is_empty()
        });
        looked
    }

    /// Schedules the next look after one, unless a ring came meanwhile.
    pub(crate) fn look_again(&mut self, name: &LockName, look: Look) {
        if let Some(queue) = self.queues.get_mut(name).filter(|queue| queue.look.why < Why::Rung) {
            queue.look = look;
        }
    }
}
