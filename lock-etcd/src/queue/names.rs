//! The queues of all names that this client watches. No I/O: what there is to send is collected,
//! and sent by [`stream`](crate::wire::stream) and [`lister`](crate::queue::lister).

use std::{
    collections::{BTreeSet, HashMap},
    sync::Arc,
    time::Duration,
};

use etcd_client::{EventType, WatchResponse};
use lock_core::{Clock, Instant, LossReason, Validity, trace};
use tokio::sync::{Notify, oneshot};
use uuid::Uuid;

use crate::{
    error::{Failure, Kind, STORE},
    layout::{
        keys::{queue_of, role},
        listing::Place,
    },
    queue::watched::{LINGER, Mine, Named, STEPS, Turn},
    wire::{
        connection::WATCH_LOGINS,
        stream::unexpected,
        watches::{About, Open, Watches},
    },
};

/// How many names are listed in one request; etcd allows 128 operations in a transaction.
const LIST_AT_ONCE: usize = 64;

/// A watch that etcd refused: whether the login may read the queue is to be asked.
#[derive(Debug)]
pub(crate) struct Doubt {
    pub(crate) queue: Arc<str>,
    /// Why, in etcd's words.
    pub(crate) reason: String,
    /// The generation of the connection on which it was refused.
    pub(crate) generation: u64,
}

/// Names to be listed in one request.
#[derive(Debug)]
pub(crate) struct ToList {
    pub(crate) queues: Vec<Arc<str>>,
    /// Ask the whole cluster and not only the member at hand.
    pub(crate) exact: bool,
}

/// All watched names.
#[derive(Debug, Default)]
pub(crate) struct Names {
    named: HashMap<Arc<str>, Named>,
    watches: Watches,
    /// The generation of the connection on which the stream stands.
    generation: u64,
    due: BTreeSet<(Instant, Arc<str>)>,
    to_list: Vec<Arc<str>>,
    doubted: Vec<Doubt>,
    /// There is something to open or to close.
    pub(crate) stream_work: Arc<Notify>,
    /// There is something to list, or due earlier than before.
    pub(crate) list_work: Arc<Notify>,
}

impl Names {
    /// An attempt waits: answers where it will be told.
    pub(crate) fn enter(
        &mut self,
        queue: &Arc<str>,
        attempt: Uuid,
        own: Place,
        before: Vec<Place>,
        ttl: Duration,
    ) -> oneshot::Receiver<Turn> {
        let (tell, told) = oneshot::channel();
        let named = self.named.entry(queue.clone()).or_default();
        // Else the next list is due already, and must not be put off by each new waiter.
        let set_due = named.queue.is_idle() || named.due.is_none();
        named.queue.enter(own, before, Mine::Waiting(attempt, tell));
        named.hot = true;
        named.poll = ttl;
        let poll = named.next_poll(Clock::Boot.now());
        self.watch(queue, 0);
        if set_due {
            self.set_due(queue, Some(poll));
        }
        self.judge(queue, None);
        told
    }

    /// A waiter took its turn. Answers whether its entry is still there.
    pub(crate) fn hold(&mut self, queue: &str, revision: i64, validity: &Validity) -> bool {
        let mine = self.named.get_mut(queue).and_then(|named| named.queue.get_mut(revision));
        let Some(mine) = mine else { return false };
        *mine = Mine::Holding(validity.clone());
        true
    }

    /// A hold that never waited lasts: watch its key from now on.
    pub(crate) fn watch_hold(
        &mut self,
        key: Arc<str>,
        (revision, stood): (i64, i64),
        validity: Validity,
    ) {
        let Ok(queue) = std::str::from_utf8(queue_of(key.as_bytes())) else { return };
        let queue: Arc<str> = match self.named.get_key_value(queue) {
            Some((queue, _)) => queue.clone(),
            None => queue.into(),
        };
        // It waits for nobody, so it need not know who was before it; whoever comes after it and
        // waits brings the whole list. Should it have become shared, the list says so.
        let kind = role(key.as_bytes()).kind().unwrap_or_default();
        let own = Place { revision, key: key.as_bytes().to_vec(), kind };
        let named = self.named.entry(queue.clone()).or_default();
        named.queue.enter(own, Vec::new(), Mine::Holding(validity));
        let poll = named.due.is_none().then(|| named.next_poll(Clock::Boot.now()));
        self.watch(&queue, stood + 1);
        if poll.is_some() {
            self.set_due(&queue, poll);
        }
        self.judge(&queue, None);
    }

    /// An attempt is over: it gave up, or what it held is lost.
    pub(crate) fn leave(&mut self, queue: &Arc<str>, revision: i64) {
        let Some(named) = self.named.get_mut(queue) else { return };
        if named.queue.leave(revision).is_some() {
            self.left(queue);
        }
    }

    /// A holder is done, and its key is about to be deleted: if that admits some of ours, the lock
    /// is theirs without waiting for the store. Everybody else waits for the deletion.
    pub(crate) fn release(&mut self, queue: &Arc<str>, revision: i64, key: &str) {
        let Some(named) = self.named.get_mut(queue) else { return };
        if named.queue.is_idle() {
            return;
        }
        named.queue.released(revision, key.as_bytes());
        self.judge(queue, None);
        self.left(queue);
    }

    /// An entry of ours is shared now: readers of ours right behind it may enter.
    pub(crate) fn downgraded(&mut self, queue: &Arc<str>, entry: &Place) {
        let Some(named) = self.named.get_mut(queue) else { return };
        named.queue.update(entry);
        self.judge(queue, None);
    }

    fn left(&mut self, queue: &Arc<str>) {
        match self.named.get(queue) {
            Some(named) if !named.queue.is_idle() => {}
            Some(named) if named.hot => self.set_due(queue, Some(Clock::Boot.now() + LINGER)),
            _ => self.close(queue),
        }
    }

    /// Opens the name's watch if there is none.
    fn watch(&mut self, queue: &Arc<str>, start: i64) {
        let Some(named) = self.named.get_mut(queue) else { return };
        if named.watch.is_some() {
            return;
        }
        let id = self.watches.open(queue, start);
        (named.watch, named.start, named.step) = (Some(id), start, 0);
        self.stream_work.notify_one();
    }

    fn close(&mut self, queue: &Arc<str>) {
        self.set_due(queue, None);
        let Some(named) = self.named.remove(queue) else { return };
        if let Some(id) = named.watch {
            self.watches.close(id);
            self.stream_work.notify_one();
        }
    }

    fn set_due(&mut self, queue: &Arc<str>, at: Option<Instant>) {
        let Some(named) = self.named.get_mut(queue) else { return };
        if named.due == at {
            return;
        }
        if let Some(old) = std::mem::replace(&mut named.due, at) {
            self.due.remove(&(old, queue.clone()));
        }
        let Some(at) = at else { return };
        if self.due.first().is_none_or(|(first, _)| at < *first) {
            self.list_work.notify_one();
        }
        self.due.insert((at, queue.clone()));
    }

    /// Tells everybody of a name what has become of them.
    fn judge(&mut self, queue: &Arc<str>, listed_at: Option<i64>) {
        let Some(named) = self.named.get_mut(queue) else { return };
        for gone in named.queue.take_gone() {
            match gone {
                // A waiter that has left needs no answer.
                Mine::Waiting(_, tell) => _ = tell.send(Turn::Gone),
                // Found out when it takes its turn.
                Mine::Granted(_) => {}
                Mine::Holding(validity) => _ = validity.lose(LossReason::EntryGone),
            }
        }
        for mine in named.queue.admitted(listed_at) {
            if let Mine::Waiting(attempt, _) = *mine
                && let Mine::Waiting(_, tell) = std::mem::replace(mine, Mine::Granted(attempt))
            {
                // A waiter that has left needs no answer.
                _ = tell.send(Turn::Yours);
            }
        }
        if named.queue.wants_list() && !named.listing {
            named.listing = true;
            self.to_list.push(queue.clone());
            self.list_work.notify_one();
        }
    }

    /// A message of the watch stream.
    ///
    /// # Errors
    ///
    /// Why etcd cancelled or refused a watch that we want, if another stream may mend it.
    pub(crate) fn message(&mut self, message: &WatchResponse) -> Result<(), Failure> {
        let id = match self.watches.about(message) {
            About::Watch(id) => id,
            About::Closed => return Ok(()),
            About::Unknown => {
                trace::unexpected(STORE, &unexpected(message));
                return Ok(());
            }
        };
        let Some(queue) = self.watches.queue(id) else { return Ok(()) };
        if message.canceled() {
            return match message.created() {
                true => self.refused(&queue, id, message.cancel_reason()),
                false => self.cancelled(&queue, id, message),
            };
        }
        self.told(&queue, message);
        Ok(())
    }

    /// A watch has begun, or has something to tell.
    fn told(&mut self, queue: &Arc<str>, message: &WatchResponse) {
        let Some(named) = self.named.get_mut(queue) else { return };
        if message.created() {
            let now = message.header().map_or(0, |header| header.revision());
            named.queue.watch_began(if named.start > 0 { named.start - 1 } else { now });
            named.denied = false;
        }
        let synced_now = !message.events().is_empty() && named.step < STEPS.len();
        for event in message.events() {
            if let (EventType::Delete, Some(kv)) = (event.event_type(), event.kv()) {
                named.queue.deleted(kv.key(), kv.mod_revision());
            }
        }
        if synced_now {
            named.step = STEPS.len();
            // One that is left is not to be listed next, but to be closed.
            if !named.queue.is_idle() {
                let poll = named.due.map(|_| named.next_poll(Clock::Boot.now()));
                self.set_due(queue, poll);
            }
        }
        self.judge(queue, None);
    }

    /// etcd did not begin a watch: the login has expired, or may not read the queue. The words for both
    /// are the same in some versions, so it is asked.
    fn refused(&mut self, queue: &Arc<str>, id: i64, reason: &str) -> Result<(), Failure> {
        let words = ["permission denied", "auth", "user name"];
        if !words.iter().any(|words| reason.contains(words)) {
            return Err(Failure::new(Kind::Broken, format!("the watch was refused: {reason}")));
        }
        self.watches.ended(id);
        if let Some(named) = self.named.get_mut(queue) {
            named.queue.watch_ended();
            named.watch = None;
        }
        let (queue, reason, generation) = (queue.clone(), reason.to_owned(), self.generation);
        self.doubted.push(Doubt { queue, reason, generation });
        self.list_work.notify_one();
        Ok(())
    }

    /// The watches that etcd refused.
    pub(crate) fn take_doubted(&mut self) -> Vec<Doubt> {
        std::mem::take(&mut self.doubted)
    }

    /// The login may read a queue whose watch was refused: by the next try there may be another login.
    pub(crate) fn watch_again(&mut self, queue: &Arc<str>) {
        if self.named.get(queue).is_some_and(|named| named.watch.is_none()) {
            self.set_due(queue, Some(Clock::Boot.now() + WATCH_LOGINS));
        }
    }

    /// A name cannot be watched for want of rights. Its waiters are told; its holders keep what
    /// they have, and are not told of a deletion. The watch is tried again by and by.
    pub(crate) fn deny(&mut self, queue: &Arc<str>, reason: &str) {
        let Some(named) = self.named.get_mut(queue) else { return };
        named.queue.watch_ended();
        named.watch = None;
        if !std::mem::replace(&mut named.denied, true) {
            trace::unwatched(STORE, &format_args!("{queue}: {reason}"));
        }
        let reason: Arc<str> = reason.into();
        for mine in named.queue.leave_if(|mine| matches!(mine, Mine::Waiting(..))) {
            if let Mine::Waiting(_, tell) = mine {
                // A waiter that has left needs no answer.
                _ = tell.send(Turn::Denied(reason.clone()));
            }
        }
        if named.queue.is_idle() {
            return self.close(queue);
        }
        self.set_due(queue, Some(Clock::Boot.now() + LINGER));
    }

    fn cancelled(
        &mut self,
        queue: &Arc<str>,
        id: i64,
        message: &WatchResponse,
    ) -> Result<(), Failure> {
        if message.compact_revision() == 0 {
            let reason = format!("the watch was cancelled: {}", message.cancel_reason());
            return Err(Failure::new(Kind::Broken, reason));
        }
        // It began, or fell behind, at a revision that is compacted: begin now, and list.
        self.watches.ended(id);
        if let Some(named) = self.named.get_mut(queue) {
            named.queue.watch_ended();
            named.watch = None;
        }
        self.watch(queue, 0);
        Ok(())
    }

    /// The stream is to be opened on this generation of the connection.
    pub(crate) fn stream_begins(&mut self, generation: u64) {
        self.generation = generation;
    }

    /// The watch stream is gone, and with it all watches. They begin anew from "now", and what
    /// happened meanwhile is found out by lists: replaying the history since then would make etcd
    /// read all of it.
    pub(crate) fn stream_lost(&mut self) {
        self.watches.clear();
        let queues: Vec<_> = self.named.keys().cloned().collect();
        for queue in queues {
            let Some(named) = self.named.get_mut(&queue) else { continue };
            named.queue.watch_ended();
            named.watch = None;
            if named.is_over() {
                self.close(&queue);
                continue;
            }
            named.step = 0;
            let poll = named.next_poll(Clock::Boot.now());
            self.watch(&queue, 0);
            self.set_due(&queue, Some(poll));
        }
    }

    /// The next watch to ask for. An outage may have ended what it was for.
    pub(crate) fn next_open(&mut self) -> Option<Open> {
        while let Some((id, queue)) = self.watches.next_queue() {
            if self.named.get(&queue).is_some_and(|named| !named.is_over()) {
                return self.watches.next_open();
            }
            self.close(&queue);
            self.watches.close(id);
        }
        None
    }

    pub(crate) fn next_close(&mut self) -> Option<i64> {
        self.watches.next_close()
    }

    /// What to list now, and when to come again.
    pub(crate) fn next_list(&mut self, now: Instant) -> (Option<ToList>, Instant) {
        let due: Vec<_> = self.due.iter().take_while(|(at, _)| *at <= now).cloned().collect();
        for due in due {
            self.due.remove(&due);
            self.fall_due(&due.1, now);
        }
        let wake = self.due.first().map_or(Instant::NEVER, |(at, _)| *at);
        if self.to_list.is_empty() {
            return (None, wake);
        }
        let rest = self.to_list.len().saturating_sub(LIST_AT_ONCE);
        let queues = self.to_list.split_off(rest);
        let stale = |queue: &Arc<str>| self.named.get(queue).is_some_and(|named| named.stale);
        let exact = queues.iter().any(stale);
        (Some(ToList { queues, exact }), if rest > 0 { now } else { wake })
    }

    fn fall_due(&mut self, queue: &Arc<str>, now: Instant) {
        let Some(named) = self.named.get_mut(queue) else { return };
        named.due = None;
        if named.is_over() {
            return self.close(queue);
        }
        if named.watch.is_none() {
            // It was refused; waiters are told of the list that follows when it begins.
            let due = now + named.poll;
            self.watch(queue, 0);
            return self.set_due(queue, Some(due));
        }
        if !named.listing {
            named.listing = true;
            self.to_list.push(queue.clone());
        }
        named.step = (named.step + 1).min(STEPS.len());
        let next = named.next_poll(now);
        self.set_due(queue, Some(next));
    }

    /// A name's queue at a revision.
    pub(crate) fn listed(&mut self, queue: &Arc<str>, at: i64, places: &[Place]) {
        let Some(named) = self.named.get_mut(queue) else { return };
        named.listing = false;
        named.queue.listed(at, places);
        named.stale = named.queue.wants_list();
        self.judge(queue, Some(at));
    }

    /// The key of the first in line, and the places of attempts of ours, as far as they are known.
    pub(crate) fn standing(
        &self,
        queue: &str,
        attempts: &[Uuid],
    ) -> (Option<Vec<u8>>, Vec<Option<usize>>) {
        let Some(named) = self.named.get(queue) else { return (None, vec![None; attempts.len()]) };
        let attempt = |mine: &Mine| match mine {
            Mine::Waiting(attempt, _) | Mine::Granted(attempt) => Some(*attempt),
            Mine::Holding(_) => None,
        };
        let places = named.queue.places();
        let places: HashMap<_, _> =
            places.filter_map(|(mine, place)| Some((attempt(mine)?, place))).collect();
        let places = attempts.iter().map(|attempt| places.get(attempt).copied()).collect();
        (named.queue.first().map(<[u8]>::to_vec), places)
    }

    /// A list failed; it is tried again by and by.
    pub(crate) fn not_listed(&mut self, queue: &Arc<str>) {
        let Some(named) = self.named.get_mut(queue) else { return };
        named.listing = false;
        self.judge(queue, None);
    }
}

#[cfg(test)]
#[path = "names_tests.rs"]
mod tests;
