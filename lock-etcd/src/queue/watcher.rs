//! The watch side of a client: one stream, one watch for each name that needs one.

use std::{
    collections::VecDeque,
    sync::{
        Arc, Mutex, MutexGuard, PoisonError,
        atomic::{AtomicBool, Ordering},
    },
    time::Duration,
};

use etcd_client::{WatchFilterType, WatchOptions, WatchResponse};
use lock_core::{Clock, Instant, Validity};
use tokio::sync::{Notify, oneshot};
use uuid::Uuid;

use crate::{
    error::Failure,
    layout::listing::QueueEntry,
    queue::{names::Names, watched::Told},
    wire::{connection::Connection, stream::Side, watches::Open},
};

/// How long a hold that never waited goes without a watch of its key. Most holds are over by then
/// and cost etcd nothing but their two requests; the others learn of a deletion at once after that.
const UNWATCHED: Duration = Duration::from_millis(50);

/// What is known of the names that this client waits for or holds.
#[derive(Debug)]
pub(crate) struct Watcher {
    names: Mutex<Names>,
    young: Mutex<VecDeque<Young>>,
    pub(crate) connection: Arc<Connection>,
    pub(crate) stream_work: Arc<Notify>,
    pub(crate) list_work: Arc<Notify>,
}

/// A hold that is not watched yet.
#[derive(Debug)]
struct Young {
    since: Instant,
    key: Arc<str>,
    revision: i64,
    /// A later revision at which it stood, if it is known to have been there for longer.
    stood: i64,
    validity: Validity,
    /// Whether it is over.
    over: Arc<AtomicBool>,
}

impl Watcher {
    pub(crate) fn new(connection: Arc<Connection>) -> Self {
        let names = Names::default();
        let (stream_work, list_work) = (names.stream_work.clone(), names.list_work.clone());
        Self {
            names: Mutex::new(names),
            young: Mutex::default(),
            connection,
            stream_work,
            list_work,
        }
    }

    pub(crate) fn names(&self) -> MutexGuard<'_, Names> {
        // Nothing panics while it holds this lock.
        self.names.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn young(&self) -> MutexGuard<'_, VecDeque<Young>> {
        // Nothing panics while it holds this lock.
        self.young.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// An attempt waits: answers where it will be told.
    pub(crate) fn enter(
        &self,
        queue: &Arc<str>,
        attempt: Uuid,
        own: QueueEntry,
        before: Vec<QueueEntry>,
        ttl: Duration,
    ) -> oneshot::Receiver<Told> {
        self.names().enter(queue, attempt, own, before, ttl)
    }

    /// A hold that never waited: watches its key if it lasts. The flag is to be set when it is
    /// over.
    pub(crate) fn add_young(
        &self,
        (key, revision, stood): (Arc<str>, i64, i64),
        validity: Validity,
    ) -> Arc<AtomicBool> {
        let over = Arc::new(AtomicBool::new(false));
        let mut young = self.young();
        let first = young.is_empty();
        young.push_back(Young {
            since: Clock::Boot.now(),
            key,
            revision,
            stood,
            validity,
            over: over.clone(),
        });
        drop(young);
        if first {
            self.list_work.notify_one();
        }
        over
    }

    /// Watches the holds that are not young any more, and answers when the next one is.
    pub(crate) fn grow_up(&self, now: Instant) -> Instant {
        loop {
            let mut young = self.young();
            let Some(first) = young.front() else { return Instant::NEVER };
            if first.over.load(Ordering::Acquire) {
                young.pop_front();
                continue;
            }
            if now < first.since + UNWATCHED {
                return first.since + UNWATCHED;
            }
            let first = young.pop_front();
            drop(young);
            let Some(Young { key, revision, stood, validity, over, .. }) = first else { continue };
            let mut names = self.names();
            // Under the lock under which it leaves: it must not come back after that.
            if !over.load(Ordering::Acquire) {
                names.watch_hold(key, (revision, stood), validity);
            }
        }
    }
}

impl Side for Watcher {
    fn connection(&self) -> &Connection {
        &self.connection
    }

    fn work(&self) -> &Notify {
        &self.stream_work
    }

    /// Deletions of the name's keys and nothing else.
    fn options(&self) -> WatchOptions {
        WatchOptions::new().with_filters([WatchFilterType::NoPut])
    }

    /// The keep-alives find out sooner.
    fn heartbeat(&self) -> Option<Duration> {
        None
    }

    fn next_open(&self) -> Option<Open> {
        self.names().next_open()
    }

    fn next_close(&self) -> Option<i64> {
        self.names().next_close()
    }

    fn begins(&self, generation: u64) {
        self.names().stream_begins(generation);
    }

    fn message(&self, message: &WatchResponse) -> Result<(), Failure> {
        self.names().message(message)
    }

    fn lost(&self) {
        self.names().stream_lost();
    }
}
