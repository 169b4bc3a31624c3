//! Watches our own nodes, so that an operator who deletes one is noticed.
//!
//! A watch costs a request, and most locks are held for a moment only. So a node is watched once it
//! is [`YOUTH`] old, whether its attempt waits or holds: an uncontended acquire and release stay at
//! three requests, and a deletion is told within about that time.

use std::{
    collections::VecDeque,
    sync::{Arc, Mutex, Weak},
    time::Duration,
};

use futures_util::{StreamExt, stream::FuturesUnordered};
use lock_core::{Clock, Instant};
use tokio::sync::Notify;
use tokio_util::sync::CancellationToken;
use zookeeper_client::{Error as ZkError, EventType, OneshotWatcher};

use crate::{
    entry::Entry,
    error,
    session::{Session, lock},
};

/// How old a node gets before it is watched.
const YOUTH: Duration = Duration::from_millis(100);
/// The task looks at most this often.
const STEP: Duration = Duration::from_millis(50);

/// Entries in order of age; all have the same time to go.
#[derive(Debug, Default)]
pub(crate) struct Young {
    queue: Mutex<VecDeque<(Instant, Weak<Entry>)>>,
    first: Arc<Notify>,
}

impl Young {
    /// Adds an entry whose node was just created.
    pub(crate) fn add(&self, entry: &Arc<Entry>) {
        let mut queue = lock(&self.queue);
        queue.push_back((Clock::Boot.now() + YOUTH, Arc::downgrade(entry)));
        if queue.len() == 1 {
            self.first.notify_one();
        }
    }

    pub(crate) fn first(&self) -> Arc<Notify> {
        self.first.clone()
    }

    /// Takes those that are old enough; answers when to come back, if anybody is left.
    fn grown_up(&self, now: Instant) -> (Vec<Arc<Entry>>, Option<Duration>) {
        let mut queue = lock(&self.queue);
        let mut grown = Vec::new();
        while queue.front().is_some_and(|(due, _)| *due <= now) {
            let entry = queue.pop_front().and_then(|(_, entry)| entry.upgrade());
            grown.extend(entry.filter(|entry| !entry.has_ended()));
        }
        if queue.is_empty() {
            queue.shrink_to(64);
        }
        (grown, queue.front().map(|(due, _)| due.since(now).max(STEP)))
    }
}

/// Watches the own nodes of a session until it is over or dropped.
pub(crate) async fn watch(session: Weak<Session>, over: CancellationToken, first: Arc<Notify>) {
    let mut watched = FuturesUnordered::new();
    loop {
        let Some(alive) = session.upgrade() else { return };
        let (grown, pause) = alive.young.grown_up(Clock::Boot.now());
        drop(alive);
        for entry in grown {
            watched.push(watch_one(session.clone(), entry));
        }
        let more = async {
            match pause {
                Some(pause) => tokio::time::sleep(pause).await,
                None => first.notified().await,
            }
        };
        tokio::pin!(more);
        loop {
            tokio::select! {
                () = over.cancelled() => return,
                () = &mut more => break,
                Some(()) = watched.next() => {}
            }
        }
    }
}

async fn watch_one(session: Weak<Session>, entry: Arc<Entry>) {
    let weak = Arc::downgrade(&entry);
    let mut entry = Some(entry);
    // Held only for the time of a request: a lock's memory is not a watch's business.
    while let Some(alive) = entry.take().or_else(|| weak.upgrade()) {
        // Boxed, since it is over soon, and what is left here stays as long as the lock is held.
        match Box::pin(arm(&session, &alive)).await {
            Ok(Some(watcher)) => {
                drop(alive);
                match watcher.changed().await.event_type {
                    EventType::NodeDeleted => {
                        let _ = weak.upgrade().inspect(|entry| entry.gone());
                        return;
                    }
                    EventType::Session => return,
                    _ => {}
                }
            }
            Err(ZkError::NoNode) => return alive.gone(),
            // As in `Session::again`: a loop without a pause might hold up a shutdown.
            Err(error) if error::is_unanswered(&error) => tokio::time::sleep(STEP).await,
            Ok(None) | Err(_) => return,
        }
    }
}

/// Sets the watch, unless there is nothing to watch any more.
async fn arm(session: &Weak<Session>, entry: &Entry) -> Result<Option<OneshotWatcher>, ZkError> {
    let Some(session) = session.upgrade() else { return Ok(None) };
    let (Some(node), Ok(exchange)) = (entry.node(), session.begin()) else { return Ok(None) };
    if entry.has_ended() {
        return Ok(None);
    }
    // An ephemeral node has no children: the watch tells of its end, and not of what we write to it.
    let armed = exchange.watch_children(&node.path);
    Ok(Some(armed.await?.1))
}
