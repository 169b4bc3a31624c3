//! The watches of all observers of a client, on one stream, and what the observers of a name share.

use std::{
    collections::HashMap,
    sync::{Arc, Weak},
};

use etcd_client::WatchResponse;
use lock_core::{Instant, Leader};
use tokio::sync::{Mutex, mpsc};

use crate::{
    error::Failure,
    wire::{
        stream::{Side, Stream},
        watches::Watches,
    },
};

/// What a watch tells its observer. The observer then reads the queue.
pub(crate) enum Hint {
    /// Something in the queue has changed.
    Changed,
    /// etcd refused the watch on this generation of the connection: the login has expired, or may
    /// not read the queue.
    Refused(u64),
}

/// The last read of a name.
#[derive(Default)]
pub(crate) struct Last {
    pub(crate) sent: Instant,
    pub(crate) seen: Seen,
    /// Why it failed, if it did.
    pub(crate) failure: Option<Failure>,
    /// The create revision and the note of the last candidate that led.
    pub(crate) note: (i64, Vec<u8>),
    /// The token floor of the last leader.
    pub(crate) floor: u64,
}

/// The result of a read.
#[derive(Clone, Debug, Default)]
pub(crate) struct Seen {
    pub(crate) revision: i64,
    pub(crate) leader: Option<Leader>,
}

/// The watches of all observers.
pub(crate) type Observers = Stream<All>;

#[derive(Default)]
pub(crate) struct All {
    watches: Watches,
    tell: HashMap<i64, mpsc::Sender<Hint>>,
    names: HashMap<Arc<str>, Weak<Mutex<Last>>>,
}

/// A watch of one observer. It ends when this is dropped.
pub(crate) struct Watching {
    id: i64,
    /// Ends if the watch was broken off: the observer must read, and watch again.
    pub(crate) hints: mpsc::Receiver<Hint>,
    observers: Arc<Observers>,
}

impl Drop for Watching {
    fn drop(&mut self) {
        let mut all = self.observers.side();
        all.tell.remove(&self.id);
        all.watches.close(self.id);
    }
}

/// Watches all keys of a queue from a revision on.
pub(crate) fn watch(observers: &Arc<Observers>, queue: &Arc<str>, start: i64) -> Watching {
    // One hint is enough until the observer reads.
    let (tell, hints) = mpsc::channel(1);
    let mut all = observers.side();
    let id = all.watches.open(queue, start);
    all.tell.insert(id, tell);
    drop(all);
    Watching { id, hints, observers: observers.clone() }
}

impl Side for All {
    fn watches(&mut self) -> &mut Watches {
        &mut self.watches
    }

    fn told(&mut self, id: i64, message: &WatchResponse) -> Result<(), Failure> {
        if !message.canceled() {
            if !message.events().is_empty()
                && let Some(tell) = self.tell.get(&id)
            {
                // The observer has a hint if there is no room.
                _ = tell.try_send(Hint::Changed);
            }
            return Ok(());
        }
        self.watches.ended(id);
        if let Some(tell) = self.tell.remove(&id)
            && message.created()
        {
            // If there is no room, the next watch is refused, too.
            _ = tell.try_send(Hint::Refused(self.watches.generation));
        }
        Ok(())
    }

    fn lost(&mut self) {
        self.watches.clear();
        self.tell.clear();
    }
}

impl All {
    /// Has all observers read and watch anew: the store has gone back to an earlier state.
    pub(crate) fn begin_anew(&mut self) {
        for (id, _) in self.tell.drain() {
            self.watches.close(id);
        }
    }

    /// Returns what the observers of a name share.
    pub(crate) fn name(&mut self, queue: &Arc<str>) -> Arc<Mutex<Last>> {
        self.names.retain(|_, last| last.strong_count() > 0);
        let last = self.names.get(queue).and_then(Weak::upgrade);
        last.unwrap_or_else(|| {
            let last = Arc::default();
            self.names.insert(queue.clone(), Arc::downgrade(&last));
            last
        })
    }
}
