//! Watches, and the room for them.
//!
//! After a reconnect the client crate tells the server again which paths are watched. Its version
//! 0.11.2 does so in frames of 128 KiB, and gives all of them the same number. When the second one
//! is answered it breaks the connection, and so after every reconnect, until the session is dead.
//! (It also repeats the watches on children in each frame, until a server refuses it.) So only as
//! many watches exist in a session as fit into one frame. All other nodes are looked at now and
//! then.

use std::{sync::Arc, time::Duration};

use tokio::sync::{OwnedSemaphorePermit, Semaphore};
use zookeeper_client::{EventType, OneshotWatcher};

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
pub(crate) struct Watch(pub(super) Option<(OneshotWatcher, OwnedSemaphorePermit)>);

impl Watches {
    /// Makes the watches of a session; all room is free. The server's paths are longer by the
    /// chroot.
    pub(crate) fn new(chroot: &str) -> Self {
        Self { free: Arc::new(Semaphore::new(MOST_BYTES)), chroot: chroot.len() }
    }

    /// Takes room for a path, if there is enough.
    pub(super) fn take(&self, path: &str) -> Option<OwnedSemaphorePermit> {
        let bytes = u32::try_from(self.chroot + path.len()).ok()?;
        self.free.clone().try_acquire_many_owned(bytes).ok()
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
