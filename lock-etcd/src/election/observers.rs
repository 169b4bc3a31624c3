//! The watches of all observers of a client, on one stream.

use std::{
    collections::HashMap,
    sync::{Arc, Mutex, MutexGuard, PoisonError},
    time::Duration,
};

use etcd_client::{EventType, WatchOptions, WatchResponse};
use lock_core::trace;
use tokio::sync::{Notify, mpsc};

use crate::{
    election::leader::{Change, Seen},
    error::{Failure, FailureKind, STORE},
    wire::{
        connection::Connection,
        stream::{Side, unexpected},
        watches::{About, Open, Watches},
    },
};

/// How many messages may wait for an observer that is asking etcd for something. One that falls
/// behind watches again from where it stands.
const UNREAD: usize = 64;

/// How often to see whether etcd is there: a connection may break without a sound.
const HEARTBEAT: Duration = Duration::from_secs(5);

/// What a watch tells its observer.
#[derive(Debug)]
pub(crate) enum News {
    Changes(Vec<Change>),
    /// It cannot go on from there: read the queue.
    Gone,
    /// etcd refused it on this generation of the connection: the login has expired, or may not read
    /// the queue.
    Refused(u64),
}

/// The watches of all observers.
#[derive(Debug)]
pub(crate) struct Observers {
    all: Mutex<All>,
    work: Notify,
    connection: Arc<Connection>,
}

#[derive(Debug, Default)]
struct All {
    watches: Watches,
    /// The generation of the connection on which the stream stands.
    generation: u64,
    tell: HashMap<i64, mpsc::Sender<News>>,
}

/// A watch of one observer; it ends when this is dropped.
#[derive(Debug)]
pub(crate) struct Watching {
    id: i64,
    news: mpsc::Receiver<News>,
    observers: Arc<Observers>,
}

impl Watching {
    /// What happens next; `None` if the watch was broken off and is to begin again from where the
    /// observer stands.
    pub(crate) async fn next(&mut self) -> Option<News> {
        self.news.recv().await
    }
}

impl Drop for Watching {
    fn drop(&mut self) {
        let mut all = self.observers.all();
        all.tell.remove(&self.id);
        all.watches.close(self.id);
        drop(all);
        self.observers.work.notify_one();
    }
}

impl Observers {
    pub(crate) fn new(connection: Arc<Connection>) -> Self {
        Self { all: Mutex::default(), work: Notify::new(), connection }
    }

    fn all(&self) -> MutexGuard<'_, All> {
        // Nothing panics while it holds this lock.
        self.all.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Watches everything in a queue from a revision on.
    pub(crate) fn watch(self: &Arc<Self>, queue: &Arc<str>, start: i64) -> Watching {
        let (tell, news) = mpsc::channel(UNREAD);
        let mut all = self.all();
        let id = all.watches.open(queue, start);
        all.tell.insert(id, tell);
        drop(all);
        self.work.notify_one();
        Watching { id, news, observers: self.clone() }
    }
}

impl Side for Observers {
    fn connection(&self) -> &Connection {
        &self.connection
    }

    fn work(&self) -> &Notify {
        &self.work
    }

    fn options(&self) -> WatchOptions {
        WatchOptions::new()
    }

    fn heartbeat(&self) -> Option<Duration> {
        Some(HEARTBEAT)
    }

    fn next_open(&self) -> Option<Open> {
        self.all().watches.next_open()
    }

    fn next_close(&self) -> Option<i64> {
        self.all().watches.next_close()
    }

    fn begins(&self, generation: u64) {
        self.all().generation = generation;
    }

    fn message(&self, message: &WatchResponse) -> Result<(), Failure> {
        let mut all = self.all();
        let id = match all.watches.about(message) {
            About::Watch(id) => id,
            About::Closed => return Ok(()),
            About::Unknown => {
                trace::unexpected(STORE, &unexpected(message));
                return Ok(());
            }
        };
        if message.canceled() {
            return all.cancelled(id, message);
        }
        let changes = changes(message);
        if !changes.is_empty()
            && all.tell.get(&id).is_some_and(|tell| tell.try_send(News::Changes(changes)).is_err())
        {
            // It has too much to read: it sees the end, and begins again when it has.
            all.tell.remove(&id);
        }
        Ok(())
    }

    fn lost(&self) {
        let mut all = self.all();
        all.watches.clear();
        all.tell.clear();
    }
}

impl All {
    fn cancelled(&mut self, id: i64, message: &WatchResponse) -> Result<(), Failure> {
        self.watches.ended(id);
        // It began, or fell behind, at a revision that is compacted.
        let compacted = message.compact_revision() != 0;
        let refused = message.created() && !compacted;
        if let Some(tell) = self.tell.remove(&id) {
            // One that has left, or has too much to read, begins again by itself.
            _ = tell.try_send(if refused { News::Refused(self.generation) } else { News::Gone });
        }
        match compacted || refused {
            true => Ok(()),
            false => {
                let reason = message.cancel_reason();
                Err(Failure::new(FailureKind::Broken, format!("a watch was cancelled: {reason}")))
            }
        }
    }
}

fn changes(message: &WatchResponse) -> Vec<Change> {
    let change = |event: &etcd_client::Event| {
        let kv = event.kv()?;
        Some(match event.event_type() {
            EventType::Put => Change::Put(Seen::of(kv)),
            EventType::Delete => Change::Deleted { key: kv.key().to_vec(), at: kv.mod_revision() },
        })
    };
    message.events().iter().filter_map(change).collect()
}
