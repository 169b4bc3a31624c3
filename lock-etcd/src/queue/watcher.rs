//! What this client knows of the queues that it watches. Here an attempt is told that the lock is its
//! own, or gone. No I/O: requests are collected for the [lists](crate::queue::lists) and the
//! [stream](crate::queue::stream).

use std::{
    collections::{BTreeSet, HashMap, VecDeque},
    sync::{Arc, Mutex, MutexGuard},
    time::Duration,
};

use lock_core::{Clock, Instant, LossReason, Validity, keep::poison::lock};
use tokio::sync::{Notify, mpsc, oneshot};
use uuid::Uuid;

use crate::{
    layout::{
        keys::{queue_of, role},
        listing::{Before, QueueEntry},
    },
    queue::name::{Hint, LINGER, Mine, WaitEnd, Watched},
    wire::{connection::Connection, watches::Watches},
};

/// How long a hold that never waited stays without a watch of its key. Most holds are over by then
/// and cost etcd only their two requests. The others learn of a deletion at once after that.
const UNWATCHED: Duration = Duration::from_millis(50);

/// The state of the names that this client waits for, holds or observes, and what updates it.
pub(crate) struct Watcher {
    names: Mutex<Names>,
    pub(super) work: Arc<Notify>,
    pub(crate) connection: Arc<Connection>,
}

impl Watcher {
    pub(crate) fn new(connection: Arc<Connection>) -> Self {
        let names = Names::default();
        let work = names.watches.work.clone();
        Self { names: Mutex::new(names), work, connection }
    }

    pub(crate) fn names(&self) -> MutexGuard<'_, Names> {
        lock(&self.names)
    }
}

/// A hold that is not watched yet.
struct Young {
    since: Instant,
    revision: i64,
    /// A revision of a moment ago at which it stood, if one is known.
    stood: Option<i64>,
    validity: Validity,
}

/// All watched names.
#[derive(Default)]
pub(crate) struct Names {
    pub(super) watched: HashMap<Arc<str>, Watched>,
    pub(super) watches: Watches,
    /// Where to tell the observers of elections, by their watches.
    pub(super) observed: HashMap<i64, mpsc::Sender<Hint>>,
    /// Holds that are not watched yet, by their keys.
    young: HashMap<Arc<str>, Young>,
    /// Young holds in order of age, and some that are over.
    by_age: VecDeque<(Instant, Arc<str>)>,
    pub(super) due: BTreeSet<(Instant, Arc<str>)>,
    pub(super) to_list: Vec<Arc<str>>,
    /// Notified when there is a queue to list, or a due time earlier than before.
    pub(crate) work: Arc<Notify>,
}

impl Names {
    /// Adds a waiting attempt. Returns the receiver of its message.
    pub(crate) fn enter(
        &mut self,
        queue: &Arc<str>,
        attempt: Uuid,
        own: QueueEntry,
        before: Before,
        ttl: Duration,
    ) -> oneshot::Receiver<WaitEnd> {
        let (tell, told) = oneshot::channel();
        let watched = self.watched.entry(queue.clone()).or_default();
        watched.poll = Some(ttl);
        let seen = own.revision;
        self.add(queue, own, seen, Some(before), Mine::Waiting(attempt, tell), 0);
        told
    }

    /// Adds an attempt of ours, whose entry stood at the revision `seen`. If its name has no watch
    /// yet, one begins at `start`.
    fn add(
        &mut self,
        queue: &Arc<str>,
        own: QueueEntry,
        seen: i64,
        before: Option<Before>,
        mine: Mine,
        start: i64,
    ) {
        let watched = self.watched.entry(queue.clone()).or_default();
        // Otherwise the next list is due already, and a new attempt must not delay it.
        let set_due = watched.queue.is_idle() || watched.due.is_none();
        // Otherwise the list that follows the beginning of the queue's watch decides.
        let decides = watched.queue.is_idle() || watched.watch.is_none();
        watched.queue.enter(seen, own, before, mine);
        watched.told_idle = 0;
        if decides {
            self.follow(queue, start);
        }
        self.follow_own(queue, seen);
        if set_due {
            self.plan(queue);
        }
        self.judge(queue, None);
    }

    /// Turns a waiter into a holder. Returns whether its entry is still there.
    pub(crate) fn hold(&mut self, queue: &str, revision: i64, validity: &Validity) -> bool {
        let mine = self.watched.get_mut(queue).and_then(|watched| watched.queue.get_mut(revision));
        let Some(mine) = mine else { return false };
        *mine = Mine::Holding(validity.clone());
        true
    }

    /// Adds a hold that never waited: its key is watched if it lasts.
    pub(crate) fn add_young(
        &mut self,
        key: &Arc<str>,
        revision: i64,
        stood: Option<i64>,
        validity: &Validity,
    ) {
        let (since, validity) = (Clock::Boot.now(), validity.clone());
        if self.by_age.is_empty() {
            self.work.notify_one();
        }
        self.by_age.push_back((since, key.clone()));
        self.young.insert(key.clone(), Young { since, revision, stood, validity });
    }

    /// Watches the oldest of the young holds if it is old enough. Otherwise returns when to come
    /// again.
    pub(super) fn grow_up(&mut self, now: Instant) -> Option<Instant> {
        let Some((since, key)) = self.by_age.front() else { return Some(Instant::NEVER) };
        // Otherwise it is over, and another hold of its key may be young.
        let lasts = self.young.get(key).is_some_and(|young| young.since == *since);
        let until = *since + UNWATCHED;
        if lasts && now < until {
            return Some(until);
        }
        if let Some((_, key)) = self.by_age.pop_front()
            && lasts
            && let Some(Young { revision, stood, validity, .. }) = self.young.remove(&key)
        {
            self.watch_hold(key, revision, stood, validity);
        }
        None
    }

    /// Watches the key of a hold that never waited, and that lasts. The watch begins after the
    /// revision at which it stood. Otherwise it begins now, and a list shows whether it stands: etcd
    /// would read all changes since the grant, of all keys.
    fn watch_hold(&mut self, key: Arc<str>, revision: i64, stood: Option<i64>, validity: Validity) {
        let Ok(queue) = std::str::from_utf8(queue_of(key.as_bytes())) else { return };
        let queue: Arc<str> = match self.watched.get_key_value(queue) {
            Some((queue, _)) => queue.clone(),
            None => queue.into(),
        };
        // It does not wait, so it needs no list of the entries before it. An attempt that waits
        // after it brings the last entries, or has the queue listed. If it has become shared, a
        // list says so.
        let kind = role(key.as_bytes()).kind().unwrap_or_default();
        let own = QueueEntry { revision, key: key.as_bytes().to_vec(), kind };
        let (seen, start) = (stood.unwrap_or(revision), stood.map_or(0, |stood| stood + 1));
        self.add(&queue, own, seen, None, Mine::Holding(validity), start);
    }

    /// Removes an attempt that is over: it gave up, or its lock is lost.
    pub(crate) fn leave(&mut self, queue: &Arc<str>, revision: i64, key: &str) {
        self.young.remove(key);
        let Some(watched) = self.watched.get_mut(queue) else { return };
        if watched.queue.leave(revision).is_some() {
            self.left(queue);
        }
    }

    /// Releases a hold whose key is about to be deleted. Attempts of ours that this admits get the
    /// lock without waiting for the store. All others wait for the deletion.
    pub(crate) fn release(&mut self, queue: &Arc<str>, revision: i64, key: &str) {
        self.young.remove(key);
        let Some(watched) = self.watched.get_mut(queue) else { return };
        if watched.queue.is_idle() {
            return;
        }
        watched.queue.released(revision, key.as_bytes());
        self.judge(queue, None);
        self.left(queue);
    }

    /// Notes that an entry of ours is shared now: readers of ours right behind it may enter.
    pub(crate) fn downgraded(&mut self, queue: &Arc<str>, entry: &QueueEntry) {
        let Some(watched) = self.watched.get_mut(queue) else { return };
        watched.queue.update(entry);
        self.judge(queue, None);
    }

    fn left(&mut self, queue: &Arc<str>) {
        match self.watched.get(queue) {
            Some(watched) if !watched.queue.is_idle() => {}
            Some(watched) if watched.poll.is_some() && !watched.crowded => {
                self.set_due(queue, Some(Clock::Boot.now() + LINGER));
            }
            _ => self.close(queue),
        }
    }

    /// Watches the queue, and its bell no more, unless it is watched already.
    pub(super) fn watch(&mut self, queue: &Arc<str>, start: i64) {
        if self.watched.get(queue).is_none_or(|watched| watched.watch.is_some()) {
            return;
        }
        self.unwatch(queue);
        let Some(watched) = self.watched.get_mut(queue) else { return };
        let id = self.watches.open(queue, start, false);
        (watched.watch, watched.start, watched.step) = (Some(id), start, 0);
    }

    /// Closes all watches of a name.
    pub(super) fn unwatch(&mut self, queue: &str) {
        let Some(watched) = self.watched.get_mut(queue) else { return };
        watched.unwatched().into_iter().for_each(|id| self.watches.close(id));
    }

    pub(super) fn close(&mut self, queue: &Arc<str>) {
        self.set_due(queue, None);
        self.unwatch(queue);
        self.watched.remove(queue);
    }

    /// Forgets all queues: what is known of them is of a state of the store that is gone. Waiters
    /// and holders learn it from their sessions, and observers watch anew.
    pub(crate) fn forget_all(&mut self) {
        let queues: Vec<_> = self.watched.keys().cloned().collect();
        queues.iter().for_each(|queue| self.close(queue));
        self.young.clear();
        self.observed.drain().for_each(|(id, _)| self.watches.close(id));
    }

    /// Plans the next list of a name.
    pub(super) fn plan(&mut self, queue: &Arc<str>) {
        let poll = self.watched.get(queue).map(|watched| watched.next_poll(Clock::Boot.now()));
        self.set_due(queue, poll);
    }

    pub(super) fn set_due(&mut self, queue: &Arc<str>, at: Option<Instant>) {
        let Some(watched) = self.watched.get_mut(queue) else { return };
        if watched.due == at {
            return;
        }
        if let Some(old) = std::mem::replace(&mut watched.due, at) {
            self.due.remove(&(old, queue.clone()));
        }
        let Some(at) = at else { return };
        if self.due.first().is_none_or(|(first, _)| at < *first) {
            self.work.notify_one();
        }
        self.due.insert((at, queue.clone()));
    }

    /// Tells all attempts of a name their state.
    pub(super) fn judge(&mut self, queue: &Arc<str>, listed_at: Option<i64>) {
        let Some(watched) = self.watched.get_mut(queue) else { return };
        for gone in watched.queue.take_gone() {
            match gone {
                // A waiter that has left needs no message.
                Mine::Waiting(_, tell) => _ = tell.send(WaitEnd::Gone),
                // It finds out when it takes the lock.
                Mine::Told(_) => {}
                Mine::Holding(validity) => _ = validity.lose(LossReason::EntryGone),
            }
        }
        watched.queue.admitted(listed_at).for_each(|mine| mine.tell(WaitEnd::Yours));
        // A refusal may have come while a list was under way.
        if watched.queue.wants_list() || watched.refused.is_some() {
            self.want_list(queue);
        }
    }

    /// Has a queue listed, unless it is being listed.
    pub(super) fn want_list(&mut self, queue: &Arc<str>) {
        let Some(watched) = self.watched.get_mut(queue).filter(|watched| !watched.listing) else {
            return;
        };
        watched.listing = true;
        self.to_list.push(queue.clone());
        self.work.notify_one();
    }

    /// Returns the key of the first in line, and the places of attempts of ours, as far as they are
    /// known.
    pub(crate) fn standing(
        &self,
        queue: &str,
        attempts: &[Uuid],
    ) -> (Option<Vec<u8>>, Vec<Option<usize>>) {
        let Some(watched) = self.watched.get(queue) else {
            return (None, vec![None; attempts.len()]);
        };
        let attempt = |mine: &Mine| match mine {
            Mine::Waiting(attempt, _) | Mine::Told(attempt) => Some(*attempt),
            Mine::Holding(_) => None,
        };
        let places = watched.queue.places();
        let places: HashMap<_, _> =
            places.filter_map(|(mine, place)| Some((attempt(mine)?, place))).collect();
        let places = attempts.iter().map(|attempt| places.get(attempt).copied()).collect();
        (watched.queue.first().map(<[u8]>::to_vec), places)
    }
}

#[cfg(test)]
#[path = "watcher_tests.rs"]
mod tests;
