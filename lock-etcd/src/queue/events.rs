//! The messages of the watches of names, of attempts' and observers', and the watches to open and
//! close.

use std::sync::Arc;

use etcd_client::{EventType, WatchResponse};
use lock_core::{Clock, trace};
use tokio::sync::mpsc;

use crate::{
    error::{Failure, FailureKind, STORE},
    queue::{
        name::{Hint, LINGER, STEPS, WaitEnd, Watched},
        watcher::Names,
    },
    wire::{connection::WATCH_LOGINS, requests::LAST, watches::Open},
};

/// The most events of a queue in which this client has no attempt: so many pay for the watch of the
/// next one, as with the entries before an attempt.
const MOST_IDLE: usize = LAST as usize;

impl Names {
    /// Handles a message of the stream. Fails if the stream is of no more use.
    pub(super) fn message(&mut self, message: &WatchResponse) -> Result<(), Failure> {
        let Some(id) = self.watches.about(message) else { return Ok(()) };
        if self.hint(id, message) {
            return Ok(());
        }
        let Some(queue) = self.watches.queue(id) else { return Ok(()) };
        match (message.canceled(), message.created()) {
            (true, true) => self.refused(&queue, id, message.cancel_reason()),
            (true, false) => self.cancelled(&queue, id, message),
            (false, begins) => {
                let Some(watched) = self.watched.get_mut(&queue) else { return Ok(()) };
                if begins {
                    (watched.denied, watched.locked) = (false, None);
                }
                match watched.watch == Some(id) {
                    true => self.news(&queue, message),
                    false => self.heard(&queue, id, message),
                }
                Ok(())
            }
        }
    }

    /// Takes the next watch to request. Skips those that are not needed any more after an outage.
    pub(super) fn next_open(&mut self) -> Option<Open> {
        while let Some(next) = self.watches.next() {
            let (id, queue) = (next.id, next.queue.clone());
            let is_over = |queue| self.watched.get(queue).is_none_or(Watched::is_over);
            if next.puts || !is_over(&queue) {
                break;
            }
            self.close(&queue);
            self.watches.close(id);
        }
        self.watches.next_open()
    }

    /// Handles the loss of the stream and of all its watches. Returns the names to watch anew.
    pub(super) fn lost(&mut self) -> Vec<Arc<str>> {
        self.watches.clear();
        self.observed.clear();
        self.watched.values_mut().for_each(|watched| drop(watched.unwatched()));
        self.watched.keys().cloned().collect()
    }

    /// Watches a name anew after a loss.
    ///
    /// The watch begins from "now", and lists find what happened meanwhile: replaying the history
    /// since then would make etcd read all of it.
    pub(super) fn resume(&mut self, queue: &Arc<str>) {
        let Some(watched) = self.watched.get_mut(queue) else { return };
        if watched.is_over() {
            return self.close(queue);
        }
        watched.step = 0;
        self.follow(queue, 0);
        self.plan(queue);
    }

    /// Handles a message of a watch: it has begun, or reports events.
    fn news(&mut self, queue: &Arc<str>, message: &WatchResponse) {
        let Some(watched) = self.watched.get_mut(queue) else { return };
        if message.created() {
            let now = message.header().map_or(0, |header| header.revision());
            watched.queue.watch_began(if watched.start > 0 { watched.start - 1 } else { now });
        }
        let synced_now = !message.events().is_empty() && watched.step < STEPS.len();
        for event in message.events() {
            if let (EventType::Delete, Some(kv)) = (event.event_type(), event.kv()) {
                watched.queue.deleted(kv.key(), kv.mod_revision());
            }
        }
        if synced_now {
            watched.step = STEPS.len();
            // A name without attempts is not listed next, but closed.
            if !watched.queue.is_idle() {
                let poll = watched.due.map(|_| watched.next_poll(Clock::Boot.now()));
                self.set_due(queue, poll);
            }
        }
        self.judge(queue, None);
        // After the judgement: the message may tell that our last entry is gone.
        let Some(watched) = self.watched.get_mut(queue) else { return };
        if watched.queue.is_idle() {
            watched.told_idle += message.events().len();
            if watched.told_idle > MOST_IDLE {
                self.close(queue);
            }
        }
    }

    /// Handles a watch that etcd did not begin: the login has expired, or may not read the queue.
    /// Some versions have the same text for both, and it may have been an earlier login. So a list
    /// of the queue decides.
    fn refused(&mut self, queue: &Arc<str>, id: i64, reason: &str) -> Result<(), Failure> {
        let words = ["permission denied", "auth", "user name"];
        if !words.iter().any(|words| reason.contains(words)) {
            return Err(Failure::new(
                FailureKind::Broken,
                format!("the watch was refused: {reason}"),
            ));
        }
        self.ended(queue, id);
        if let Some(watched) = self.watched.get_mut(queue) {
            watched.refused = Some(self.watches.generation);
            self.want_list(queue);
        }
        Ok(())
    }

    /// Takes the generation of the connection on which a watch was refused, if it was.
    pub(crate) fn take_refused(&mut self, queue: &str) -> Option<u64> {
        self.watched.get_mut(queue)?.refused.take()
    }

    /// Handles the list of a queue whose watch was refused, and why it failed, if it did. The watch
    /// is tried again later: by then there may be another login. If etcd refuses the login, and
    /// there `may_be_another`, the waiters fail a TTL after the first refusal.
    pub(crate) fn watch_again(
        &mut self,
        queue: &Arc<str>,
        failure: Option<&Failure>,
        may_be_another: bool,
    ) {
        let (now, Some(watched)) = (Clock::Boot.now(), self.watched.get_mut(queue)) else { return };
        if let Some(failure) = failure.filter(|failure| failure.kind == FailureKind::Denied) {
            let (patience, may_pass) =
                (watched.poll.unwrap_or(LINGER), failure.is_login_refused() && may_be_another);
            // A time without the right to read does not count.
            if !may_pass || now >= *watched.locked.get_or_insert(now) + patience {
                return self.deny(queue, &failure.to_string());
            }
        }
        if watched.watch.is_none() {
            self.set_due(queue, Some(now + WATCH_LOGINS));
        }
    }

    /// Handles a name that the login may not watch. Its waiters fail. Its holders keep their locks,
    /// and do not learn of a deletion. The watch is tried again later.
    fn deny(&mut self, queue: &Arc<str>, reason: &str) {
        self.unwatch(queue);
        let Some(watched) = self.watched.get_mut(queue) else { return };
        if !std::mem::replace(&mut watched.denied, true) {
            trace::unwatched(STORE, &format_args!("{queue}: {reason}"));
        }
        let reason: Arc<str> = reason.into();
        for mine in watched.queue.mine_mut() {
            mine.tell(WaitEnd::Denied(reason.clone()));
        }
        self.set_due(queue, Some(Clock::Boot.now() + LINGER));
    }

    /// Notes that etcd has ended a watch. What else is watched of a far name is of no use without
    /// it.
    fn ended(&mut self, queue: &Arc<str>, id: i64) {
        self.watches.ended(id);
        self.unwatch(queue);
    }

    fn cancelled(
        &mut self,
        queue: &Arc<str>,
        id: i64,
        message: &WatchResponse,
    ) -> Result<(), Failure> {
        if message.compact_revision() == 0 {
            let reason = format!("the watch was cancelled: {}", message.cancel_reason());
            return Err(Failure::new(FailureKind::Broken, reason));
        }
        // It began, or fell behind, at a revision that is compacted: begin now, and list.
        self.ended(queue, id);
        self.watch(queue, 0);
        Ok(())
    }

    /// Watches all keys of a queue from a revision on. The receiver ends if the watch was broken
    /// off: the observer must read, and watch again.
    pub(crate) fn observe(&mut self, queue: &Arc<str>, start: i64) -> (i64, mpsc::Receiver<Hint>) {
        // One hint is enough until the observer reads.
        let (tell, hints) = mpsc::channel(1);
        let id = self.watches.open(queue, start, true);
        self.observed.insert(id, tell);
        (id, hints)
    }

    /// Ends the watch of an observer.
    pub(crate) fn stop_observing(&mut self, id: i64) {
        self.observed.remove(&id);
        self.watches.close(id);
    }

    /// Hints at what a message of an observer's watch tells. Returns whether it is one.
    fn hint(&mut self, id: i64, message: &WatchResponse) -> bool {
        let Some(tell) = self.observed.get(&id) else { return false };
        let hint = match message.canceled() {
            false => (!message.events().is_empty()).then_some(Hint::Changed),
            true => message.created().then_some(Hint::Refused(self.watches.generation)),
        };
        if let Some(hint) = hint {
            // If there is no room, the observer has a hint, or its next watch is refused, too.
            _ = tell.try_send(hint);
        }
        if message.canceled() {
            self.watches.ended(id);
            self.observed.remove(&id);
        }
        true
    }
}
