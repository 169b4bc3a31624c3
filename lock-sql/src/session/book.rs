//! A client's attempts, and when it looks at which queue.

use std::{
    collections::{BTreeMap, HashMap},
    sync::{Arc, Weak},
    time::Duration,
};

use lock_core::{Instant, LockName, keep};

use crate::{
    queue::schedule::{LIMIT, Look, TOGETHER, Why},
    session::attempt::Attempt,
};

/// Shortest time between two removals of rows that expired long ago.
const SWEEP: Duration = Duration::from_secs(60);

/// A client's attempts, and when it looks at which queue.
#[derive(Debug, Default)]
pub(crate) struct Book {
    pub(crate) attempts: keep::book::Book<Attempt>,
    /// The attempts that wait, by name.
    waiting: HashMap<LockName, Vec<Arc<Attempt>>>,
    /// When to look at which queue, and why.
    looks: BTreeMap<LockName, Look>,
    /// This client's attempts that ask for the same name take turns.
    turns: HashMap<LockName, Weak<tokio::sync::Mutex<()>>>,
    /// Number of turns at which the unused ones are removed.
    turns_kept: usize,
    /// Number of changes that were reported.
    pub(crate) rings: u64,
    swept: Instant,
}

/// A queue that is due, and the attempts that wait in it.
pub(crate) type Due = (LockName, Look, Vec<Arc<Attempt>>);

impl Book {
    pub(crate) fn forget(&mut self, attempt: &Attempt) {
        self.attempts.forget(attempt);
        if let Some(waiting) = self.waiting.get_mut(&attempt.name) {
            waiting.retain(|other| other.id != attempt.id);
            if waiting.is_empty() {
                self.waiting.remove(&attempt.name);
                self.looks.remove(&attempt.name);
            }
        }
    }

    pub(crate) fn turn(&mut self, name: &LockName) -> Arc<tokio::sync::Mutex<()>> {
        if let Some(turn) = self.turns.get(name).and_then(Weak::upgrade) {
            return turn;
        }
        // Seldom: with many names, each new turn would look at all the others.
        if self.turns.len() >= self.turns_kept {
            self.turns.retain(|_, turn| turn.strong_count() > 0);
            self.turns_kept = self.turns.len() * 2 + 16;
        }
        let turn = Arc::default();
        self.turns.insert(name.clone(), Arc::downgrade(&turn));
        turn
    }

    /// Refuses new attempts, and returns the present ones.
    pub(crate) fn close(&mut self) -> Vec<Arc<Attempt>> {
        self.looks.clear();
        self.waiting.clear();
        self.attempts.close()
    }

    /// Whether it is time to remove rows that expired long ago.
    pub(super) fn sweeps(&mut self, now: Instant) -> bool {
        let due = now.since(self.swept) >= SWEEP;
        if due {
            self.swept = now;
        }
        due
    }
}

impl Book {
    /// Makes the attempts that wait in this queue look now. Returns whether there are any.
    pub(crate) fn ring(&mut self, name: &LockName) -> bool {
        self.rings += 1;
        let Some(look) = self.looks.get_mut(name) else { return false };
        look.at = Instant::default();
        look.why = look.why.max(Why::Rung);
        true
    }

    /// The token of this client's first waiting attempt in this queue.
    pub(crate) fn first_waiting(&self, name: &LockName) -> Option<u64> {
        self.waiting.get(name)?.iter().filter_map(|attempt| attempt.waiting_token()).min()
    }

    #[cfg(feature = "postgres")]
    pub(crate) fn ring_all(&mut self) {
        self.rings += 1;
        for look in self.looks.values_mut() {
            look.at = Instant::default();
            look.why = look.why.max(Why::Rung);
        }
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
        self.waiting.entry(attempt.name.clone()).or_default().push(attempt.clone());
        self.schedule(&attempt.name, look);
        look.at < before
    }

    /// Schedules a look, never later than one that is due already.
    fn schedule(&mut self, name: &LockName, look: Look) {
        let due = self.looks.entry(name.clone()).or_insert(look);
        if look.at < due.at {
            *due = Look { why: look.why.max(due.why), ..look };
        }
    }

    pub(crate) fn next_look(&self) -> Instant {
        self.looks.values().map(|look| look.at).min().unwrap_or(Instant::NEVER)
    }

    /// Takes out the queues to look at now, with the attempts that wait in them.
    pub(crate) fn take_looks(&mut self, now: Instant) -> Vec<Due> {
        let due = |(name, look): (&LockName, &Look)| {
            (look.at <= now + TOGETHER).then(|| (name.clone(), *look))
        };
        let due: Vec<_> = self.looks.iter().filter_map(due).collect();
        let mut taken = Vec::new();
        for (name, look) in due {
            let Some(waiting) = self.waiting.get_mut(&name) else { continue };
            waiting.retain(|attempt| attempt.is_waiting());
            if waiting.is_empty() {
                self.waiting.remove(&name);
                self.looks.remove(&name);
                continue;
            }
            taken.push((name.clone(), look, waiting.clone()));
            // The look stays scheduled until the answer, so that no ring gets lost.
            self.looks.insert(name, Look { at: now + LIMIT * 2, why: Why::Pace, ..look });
        }
        taken
    }

    /// Schedules the next look after one, unless a ring came meanwhile.
    pub(crate) fn look_again(&mut self, name: &LockName, look: Look) {
        if let Some(due) = self.looks.get_mut(name).filter(|due| due.why < Why::Rung) {
            *due = look;
        }
    }
}
