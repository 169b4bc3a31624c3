//! A client's attempts, and when it looks at which queue.

use std::{
    collections::{BTreeMap, BTreeSet},
    sync::Arc,
    time::Duration,
};

use lock_core::{Clock, Instant, Kind, LockName, keep};
use uuid::Uuid;

use crate::{
    layout::row::Row,
    queue::schedule::{Head, LIMIT, Look, MOST, TOGETHER, Why},
    session::attempt::Attempt,
};

/// Shortest time between two removals of rows that expired long ago.
const SWEEP: Duration = Duration::from_secs(60);

/// A client's attempts, and when it looks at which queue.
#[derive(Debug, Default)]
pub(crate) struct Book {
    pub(crate) attempts: keep::attempts::Attempts<Attempt>,
    queues: BTreeMap<LockName, Queue>,
    /// When to look at each of them.
    due: BTreeSet<(Instant, LockName)>,
    /// When a look may be made again, after one that failed.
    pub(crate) paused: Instant,
    /// Number of changes that were reported.
    pub(crate) rings: u64,
    /// When another server had taken over, as of the last check of all that the client holds.
    pub(super) checked: Option<Instant>,
    swept: Instant,
}

/// A queue in which attempts of this client wait.
#[derive(Debug)]
struct Queue {
    /// By their tokens, in line. Some are granted by now, or over: the next look at them finds out.
    waiting: BTreeMap<(u64, Uuid), Arc<Attempt>>,
    /// When to look at it, and why.
    look: Look,
}

/// A queue to look at now.
pub(crate) struct Looked {
    pub(crate) name: LockName,
    pub(crate) look: Look,
    /// The first in line of this client, up to an exclusive one, which excludes those behind it. A
    /// crowd of readers is let in by several looks.
    pub(crate) first: Vec<Arc<Attempt>>,
    /// The token of the last of these.
    pub(crate) last: u64,
}

impl Book {
    pub(crate) fn forget(&mut self, attempt: &Attempt) {
        self.attempts.forget(attempt);
        if let Some(token) = attempt.queued_token()
            && let Some(queue) = self.queues.get_mut(&attempt.name)
        {
            queue.waiting.remove(&(token, attempt.id));
            if queue.waiting.is_empty() {
                self.due.remove(&(queue.look.at, attempt.name.clone()));
                self.queues.remove(&attempt.name);
            }
        }
    }

    /// Refuses new attempts, and returns the present ones.
    pub(crate) fn close(&mut self) -> Vec<Arc<Attempt>> {
        self.queues.clear();
        self.due.clear();
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
        self.schedule(name, Look::ring)
    }

    /// Changes when to look at a queue, and why. Returns whether attempts wait in it.
    fn schedule(&mut self, name: &LockName, change: impl FnOnce(Look) -> Look) -> bool {
        let Some(Queue { look, .. }) = self.queues.get_mut(name) else { return false };
        self.due.remove(&(look.at, name.clone()));
        *look = change(*look);
        self.due.insert((look.at, name.clone()))
    }

    /// The token of this client's first waiting attempt in this queue.
    pub(crate) fn first_waiting(&self, name: &LockName) -> Option<u64> {
        self.queues.get(name)?.waiting.values().find_map(|attempt| attempt.waiting_token())
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
        self.queues.values_mut().for_each(|queue| queue.look = queue.look.ring());
        self.due = self.queues.iter().map(|(name, it)| (it.look.at, name.clone())).collect();
    }

    /// Registers a waiting attempt. `rings` is the number of rings before it asked: a ring since
    /// then may have meant this queue. Returns whether a look is due earlier than before.
    pub(crate) fn wait(&mut self, attempt: &Arc<Attempt>, mut look: Look, rings: u64) -> bool {
        let token = attempt.waiting_token().filter(|_| self.attempts.find(attempt.id).is_some());
        let Some(token) = token else { return false };
        if self.rings != rings {
            (look.at, look.why) = (Instant::default(), Why::Rung);
        }
        let before = self.next_look();
        let queue = || Queue { waiting: BTreeMap::new(), look };
        let queue = self.queues.entry(attempt.name.clone()).or_insert_with(queue);
        queue.waiting.insert((token, attempt.id), attempt.clone());
        // Never later than a look that is due already.
        self.schedule(&attempt.name, |present| match look.at < present.at {
            true => Look { why: look.why.max(present.why), ..look },
            false => present,
        });
        look.at < before
    }

    pub(crate) fn next_look(&self) -> Instant {
        self.due.first().map_or(Instant::NEVER, |(at, _)| self.paused.max(*at))
    }

    /// Returns queues to look at now, with the attempts that wait first in them: as many as one
    /// statement names. Each is looked at again if no answer comes.
    pub(crate) fn start_looks(&mut self, now: Instant) -> Vec<Looked> {
        let (mut looked, again) = (Vec::new(), now + LIMIT * 2);
        while looked.len() < MOST
            && self.next_look() <= now + TOGETHER
            && let Some((_, name)) = self.due.pop_first()
            && let Some(Queue { waiting, look }) = self.queues.get_mut(&name)
        {
            while waiting.first_key_value().is_some_and(|(_, first)| !first.is_waiting()) {
                waiting.pop_first();
            }
            let first = waiting.values().take(look.most);
            let count = first.take_while(|it| it.kind != Kind::Exclusive).count() + 1;
            let first = || waiting.iter().take(count);
            let Some(((last, _), _)) = first().next_back() else {
                self.queues.remove(&name);
                continue;
            };
            let (last, first) = (*last, first().map(|(_, attempt)| attempt.clone()).collect());
            looked.push(Looked { name: name.clone(), look: *look, first, last });
            // The look stays scheduled until the answer, so that no ring gets lost.
            *look = Look { at: again, why: Why::Pace, ..*look };
            self.due.insert((again, name));
        }
        looked
    }

    /// Schedules the next look after one, unless a ring came meanwhile.
    pub(crate) fn look_again(&mut self, name: &LockName, look: Look) {
        self.schedule(name, |present| if present.why < Why::Rung { look } else { present });
    }
}

#[cfg(test)]
mod tests;
