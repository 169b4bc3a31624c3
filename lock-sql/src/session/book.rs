//! What a client holds and waits for, and which queues it looks at when.

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

/// How often what is long dead is removed, at most.
const SWEEP: Duration = Duration::from_secs(60);

/// What a client holds and waits for, and which queues it looks at when.
#[derive(Debug, Default)]
pub(crate) struct Book {
    pub(crate) attempts: keep::book::Book<Attempt>,
    /// The attempts that wait, by name.
    waiting: HashMap<LockName, Vec<Arc<Attempt>>>,
    /// When to look at which queue, and why.
    looks: BTreeMap<LockName, Look>,
    /// Those of this client that ask for a name do so in turn.
    turns: HashMap<LockName, Weak<tokio::sync::Mutex<()>>>,
    /// How many of these there may be before those that are over are removed.
    turns_kept: usize,
    /// How often a change was told of.
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
        // Seldom: among many names, each one's turn would look at all of them.
        if self.turns.len() >= self.turns_kept {
            self.turns.retain(|_, turn| turn.strong_count() > 0);
            self.turns_kept = self.turns.len() * 2 + 16;
        }
        let turn = Arc::default();
        self.turns.insert(name.clone(), Arc::downgrade(&turn));
        turn
    }

    /// Refuses new attempts and hands out those that are there.
    pub(crate) fn close(&mut self) -> Vec<Arc<Attempt>> {
        self.looks.clear();
        self.waiting.clear();
        self.attempts.close()
    }

    /// Whether it is time to remove what is long dead.
    pub(super) fn sweeps(&mut self, now: Instant) -> bool {
        let due = now.since(self.swept) >= SWEEP;
        if due {
            self.swept = now;
        }
        due
    }
}

impl Book {
    /// Whoever waits in this queue looks now. Answers whether anybody does.
    pub(crate) fn ring(&mut self, name: &LockName) -> bool {
        self.rings += 1;
        let Some(look) = self.looks.get_mut(name) else { return false };
        look.at = Instant::default();
        look.why = look.why.max(Why::Rung);
        true
    }

    /// The first of this client who waits in this queue.
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

    /// From now on the attempt waits. `rings` is how often somebody had rung before it asked:
    /// whoever rang since may have meant this queue. Answers whether a look is due earlier than
    /// before.
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

    /// Never later than it is due already.
    fn schedule(&mut self, name: &LockName, look: Look) {
        let due = self.looks.entry(name.clone()).or_insert(look);
        if look.at < due.at {
            *due = Look { why: look.why.max(due.why), ..look };
        }
    }

    pub(crate) fn next_look(&self) -> Instant {
        self.looks.values().map(|look| look.at).min().unwrap_or(Instant::NEVER)
    }

    /// Takes out the queues to look at now, with those who wait in them.
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
            // Until it is answered, so that nobody's ring gets lost.
            self.looks.insert(name, Look { at: now + LIMIT * 2, why: Why::Pace, ..look });
        }
        taken
    }

    /// After a look: when to look again, unless somebody has rung meanwhile.
    pub(crate) fn look_again(&mut self, name: &LockName, look: Look) {
        if let Some(due) = self.looks.get_mut(name).filter(|due| due.why < Why::Rung) {
            *due = look;
        }
    }
}
