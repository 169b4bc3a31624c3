//! Watches, and the room for them.
//!
//! After a reconnect the client crate tells the server again what is watched. Its version 0.11.2
//! does so in frames of 128 KiB, and gives all of them the same number: when the second one is
//! answered it breaks the connection, and so after every reconnect, until the session is dead. (It
//! also repeats the watches on children in each frame, until a server refuses it.) So only as many
//! watches exist in a session as fit into one frame. Whatever else is to be watched is looked at
//! now and then.

use std::{
    future::poll_fn,
    sync::{Arc, Mutex},
    time::Duration,
};

use futures_util::{
    FutureExt, TryFutureExt,
    future::{BoxFuture, Shared},
};
use tokio::sync::{OwnedSemaphorePermit, Semaphore};
use zookeeper_client::{Error as ZkError, EventType, OneshotWatcher, Stat};

use crate::{session::poison::lock, wire::requests::Exchange};

/// How long all watched paths of a session may be together. The client crate's limit is 128 KiB.
const MOST_BYTES: usize = 112 * 1024;
/// How often whatever found no room is looked at.
pub(crate) const LOOK: Duration = Duration::from_secs(1);

/// The watches of a session, as many as there is room for.
#[derive(Clone, Debug)]
pub(crate) struct Watches {
    free: Arc<Semaphore>,
    chroot: usize,
}

/// A watch, or none where there is no room.
pub(crate) struct Watch {
    watcher: Option<OneshotWatcher>,
    _room: Option<OwnedSemaphorePermit>,
}

/// The event of a watch, for several tasks to see. The client crate passes events on in the
/// server's order, but the tasks run in any order: a task that sees one event asks here whether
/// another one came before it.
#[derive(Clone)]
pub(crate) struct Told {
    event: Shared<BoxFuture<'static, EventType>>,
    /// `Shared` says *not yet* while another task polls it.
    one_asks: Arc<Mutex<()>>,
}

type Answer<T> = Result<T, ZkError>;

impl Watches {
    /// All room is free. Paths are longer by that of the chroot than we know them.
    pub(crate) fn new(chroot: &str) -> Self {
        Self { free: Arc::new(Semaphore::new(MOST_BYTES)), chroot: chroot.len() }
    }

    fn take(&self, path: &str) -> Option<OwnedSemaphorePermit> {
        let bytes = u32::try_from(self.chroot + path.len()).ok()?;
        self.free.clone().try_acquire_many_owned(bytes).ok()
    }

    /// Watches what there is room for, and looks at the rest.
    async fn watch<T, W, L>(
        &self,
        path: &str,
        watched: impl FnOnce() -> W,
        looked: impl FnOnce() -> L,
    ) -> Answer<(T, Watch)>
    where
        W: Future<Output = Answer<(T, OneshotWatcher)>>,
        L: Future<Output = Answer<T>>,
    {
        match self.take(path) {
            Some(room) => {
                let (seen, watcher) = watched().await?;
                Ok((seen, Watch { watcher: Some(watcher), _room: Some(room) }))
            }
            None => Ok((looked().await?, Watch { watcher: None, _room: None })),
        }
    }

    /// Watches the end of an ephemeral node: it has no children, so a watch on them tells of
    /// nothing else.
    ///
    /// # Errors
    ///
    /// [`ZkError::NoNode`] if it has ended.
    pub(crate) async fn watch_end(&self, exchange: &Exchange, path: &str) -> Answer<Watch> {
        let watched = || exchange.watch_children(path).map_ok(|(_, watcher)| ((), watcher));
        let looked = async || exchange.stat(path).await?.map(drop).ok_or(ZkError::NoNode);
        Ok(self.watch(path, watched, looked).await?.1)
    }

    /// Reads a node, and watches its data and its end.
    ///
    /// # Errors
    ///
    /// [`ZkError::NoNode`] if it has ended.
    pub(crate) async fn watch_data(
        &self,
        exchange: &Exchange,
        path: &str,
    ) -> Answer<((Vec<u8>, Stat), Watch)> {
        let watched = || {
            let data = exchange.watch_data(path);
            data.map_ok(|(data, stat, watcher)| ((data, stat), watcher))
        };
        self.watch(path, watched, || exchange.data(path)).await
    }

    /// Lists a directory, and watches who comes and goes.
    ///
    /// # Errors
    ///
    /// [`ZkError::NoNode`] if there is none.
    pub(crate) async fn watch_children(
        &self,
        exchange: &Exchange,
        path: &str,
    ) -> Answer<(Vec<String>, Watch)> {
        self.watch(path, || exchange.watch_children(path), || exchange.list(path)).await
    }

    /// Looks whether a node exists, and watches its creation or end.
    ///
    /// # Errors
    ///
    /// Those of the client crate.
    pub(crate) async fn watch_stat(
        &self,
        exchange: &Exchange,
        path: &str,
    ) -> Answer<(Option<Stat>, Watch)> {
        self.watch(path, || exchange.watch_stat(path), || exchange.stat(path)).await
    }
}

impl Told {
    /// Waits for the event.
    pub(crate) async fn event(mut self) -> EventType {
        poll_fn(|cx| {
            let _alone = lock(&self.one_asks);
            self.event.poll_unpin(cx)
        })
        .await
    }

    /// Returns the event if it has come.
    pub(crate) fn now(self) -> Option<EventType> {
        let _alone = lock(&self.one_asks);
        self.event.now_or_never()
    }
}

impl std::fmt::Debug for Told {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Told").finish_non_exhaustive()
    }
}

impl Watch {
    /// Lets several tasks see the event.
    pub(crate) fn told(self) -> Told {
        Told { event: self.changed().boxed().shared(), one_asks: Arc::default() }
    }

    /// Whether there was room.
    pub(crate) fn is_armed(&self) -> bool {
        self.watcher.is_some()
    }

    /// Waits for an event. Without room it returns after a while as if the data had changed: it is
    /// time to look again.
    pub(crate) async fn changed(self) -> EventType {
        match self.watcher {
            Some(watcher) => watcher.changed().await.event_type,
            None => {
                tokio::time::sleep(LOOK).await;
                EventType::NodeDataChanged
            }
        }
    }
}
