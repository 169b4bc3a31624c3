//! The watches of all observers of a client, on one stream.

use std::{collections::HashMap, sync::Arc};

use etcd_client::{Event, WatchResponse};
use tokio::sync::mpsc;

use crate::{
    error::{Failure, FailureKind},
    wire::{
        stream::{Side, Stream},
        watches::Watches,
    },
};

/// How many messages may wait for an observer that is asking etcd for something. An observer that
/// falls behind watches again from its revision.
const UNREAD: usize = 64;

/// The news of a watch for its observer.
#[derive(Debug)]
pub(crate) enum News {
    Changes(Vec<Event>),
    /// The watch cannot continue from its revision: read the queue.
    Gone,
    /// etcd refused the watch on this generation of the connection: the login has expired, or may
    /// not read the queue.
    Refused(u64),
}

/// The watches of all observers.
pub(crate) type Observers = Stream<All>;

#[derive(Debug, Default)]
pub(crate) struct All {
    watches: Watches,
    tell: HashMap<i64, mpsc::Sender<News>>,
}

/// A watch of one observer. It ends when this is dropped.
#[derive(Debug)]
pub(crate) struct Watching {
    id: i64,
    /// Ends if the watch was broken off: the observer must watch again from its revision.
    pub(crate) news: mpsc::Receiver<News>,
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
    let (tell, news) = mpsc::channel(UNREAD);
    let mut all = observers.side();
    let id = all.watches.open(queue, start);
    all.tell.insert(id, tell);
    drop(all);
    Watching { id, news, observers: observers.clone() }
}

impl Side for All {
    fn watches(&mut self) -> &mut Watches {
        &mut self.watches
    }

    fn told(&mut self, id: i64, message: &WatchResponse) -> Result<(), Failure> {
        if message.canceled() {
            return self.cancelled(id, message);
        }
        let changes = || News::Changes(message.events().to_vec());
        if !message.events().is_empty()
            && self.tell.get(&id).is_some_and(|tell| tell.try_send(changes()).is_err())
        {
            // It has too much to read: it sees the end of its news, and begins again when it has
            // read them.
            self.tell.remove(&id);
        }
        Ok(())
    }

    fn lost(&mut self, too_large: bool) {
        self.watches.clear();
        if too_large {
            // It is the history of one of them: each reads its queue instead.
            self.begin_anew();
        }
        self.tell.clear();
    }
}

impl All {
    /// Has all observers read their queues anew: they cannot watch from the revisions that they know.
    pub(crate) fn begin_anew(&mut self) {
        for (_, tell) in self.tell.drain() {
            // One with too much to read finds out when it looks.
            _ = tell.try_send(News::Gone);
        }
    }

    fn cancelled(&mut self, id: i64, message: &WatchResponse) -> Result<(), Failure> {
        self.watches.ended(id);
        // It began, or fell behind, at a revision that is compacted.
        let compacted = message.compact_revision() != 0;
        let refused = message.created() && !compacted;
        let news = match refused {
            true => News::Refused(self.watches.generation),
            false => News::Gone,
        };
        // An observer that has left needs no message. One with too much to read begins again by
        // itself.
        _ = self.tell.remove(&id).map(|tell| tell.try_send(news));
        if compacted || refused {
            return Ok(());
        }
        let reason = message.cancel_reason();
        Err(Failure::new(FailureKind::Broken, format!("a watch was cancelled: {reason}")))
    }
}
