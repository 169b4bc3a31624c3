//! The watches of observers: they hint at changes.

use std::sync::Arc;

use etcd_client::WatchResponse;
use tokio::sync::mpsc;

use crate::queue::{watched::Hint, watcher::Names};

impl Names {
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
    pub(super) fn hint(&mut self, id: i64, message: &WatchResponse) -> bool {
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
