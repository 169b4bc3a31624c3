//! Watches, and the room for them.
//!
//! After a reconnect the client crate tells the server again which paths are watched. Its version
//! 0.11.2 does so in frames of 128 KiB, and gives all of them the same number. When the second one
//! is answered it breaks the connection, and so after every reconnect, until the session is dead.
//! (It also repeats the watches on children in each frame, until a server refuses it.) So only as
//! many watches exist in a session as fit into one frame. All other nodes are looked at now and
//! then.

use std::{sync::Arc, time::Duration};

use futures_util::TryFutureExt;
use tokio::sync::{OwnedSemaphorePermit, Semaphore};
use zookeeper_client::{Error as ZkError, EventType, OneshotWatcher, Stat};

use crate::wire::requests::{Answer, Exchange, Watched};

/// The most bytes of all watched paths of a session together. The client crate's limit is 128 KiB.
const MOST_BYTES: usize = 112 * 1024;
/// How often a node without a watch is looked at.
pub(crate) const LOOK: Duration = Duration::from_secs(1);

/// The watches of a session, as many as there is room for.
#[derive(Clone, Debug)]
pub(crate) struct Watches {
    free: Arc<Semaphore>,
    chroot: usize,
}

/// A watch and its room, or none where there is no room.
pub(crate) struct Watch(Option<(OneshotWatcher, OwnedSemaphorePermit)>);

impl Watches {
    /// Makes the watches of a session; all room is free. The server's paths are longer by the
    /// chroot.
    pub(crate) fn new(chroot: &str) -> Self {
        Self { free: Arc::new(Semaphore::new(MOST_BYTES)), chroot: chroot.len() }
    }

    fn take(&self, path: &str) -> Option<OwnedSemaphorePermit> {
        let bytes = u32::try_from(self.chroot + path.len()).ok()?;
        self.free.clone().try_acquire_many_owned(bytes).ok()
    }

    /// Watches if there is room, and only looks otherwise.
    async fn watch<T, W, L>(
        &self,
        path: &str,
        watched: impl FnOnce() -> W,
        looked: impl FnOnce() -> L,
    ) -> Answer<(T, Watch)>
    where
        W: Future<Output = Watched<T>>,
        L: Future<Output = Answer<T>>,
    {
        match self.take(path) {
            Some(room) => {
                let (seen, watcher) = watched().await?;
                Ok((seen, Watch(Some((watcher, room)))))
            }
            None => Ok((looked().await?, Watch(None))),
        }
    }

    /// Watches the end of an ephemeral node. Such a node has no children, so a watch on them tells
    /// of nothing else.
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
        self.watch(path, || exchange.watch_data(path), || exchange.data(path)).await
    }

    /// Lists a directory, and watches which entries come and go.
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
    /// Any error of the client crate.
    pub(crate) async fn watch_stat(
        &self,
        exchange: &Exchange,
        path: &str,
    ) -> Answer<(Option<Stat>, Watch)> {
        self.watch(path, || exchange.watch_stat(path), || exchange.stat(path)).await
    }
}

impl Watch {
    /// Whether there was room.
    pub(crate) fn is_armed(&self) -> bool {
        self.0.is_some()
    }

    /// Waits for an event. Without room it returns after a while as if the data had changed, since
    /// it is time to look again.
    pub(crate) async fn changed(self) -> EventType {
        match self.0 {
            Some((watcher, _room)) => watcher.changed().await.event_type,
            None => {
                tokio::time::sleep(LOOK).await;
                EventType::NodeDataChanged
            }
        }
    }
}
