//! Watches, and the room for them.
//!
//! After a reconnect the client crate tells the server again which paths are watched. Its version
//! 0.11.2 does so in frames of 128 KiB, and gives all of them the same number. When the second one
//! is answered it breaks the connection, and so after every reconnect, until the session is dead.
//! (It also repeats the watches on children in each frame, until a server refuses it.) So only as
//! many watches exist in a session as fit into one frame. All other nodes are looked at now and
//! then: one request looks at all own nodes together, but each waiter and each observer looks by
//! itself. Each of the three has a share of its own: however many locks a session holds, and
//! however many elections it observes, its waiters find room.

use std::{
    future::poll_fn,
    sync::{Arc, Mutex},
    time::Duration,
};

use futures_util::{
    FutureExt,
    future::{BoxFuture, Shared},
};
use lock_core::{Clock, keep::poison::lock};
use tokio::sync::{OwnedSemaphorePermit, Semaphore};
use zookeeper_client::{EventType, OneshotWatcher};

/// The most bytes of the watched paths of a session. Together they are less than the client crate's
/// limit of 128 KiB.
const OWN_BYTES: usize = 52 * 1024;
const AHEAD_BYTES: usize = 44 * 1024;
const LEADER_BYTES: usize = 16 * 1024;
/// How often a node without a watch is looked at.
pub(crate) const LOOK: Duration = Duration::from_secs(1);

/// The watches of a session, as many as there is room for.
#[derive(Debug)]
pub(crate) struct Watches {
    shares: [Arc<Semaphore>; 3],
    chroot: usize,
}

/// What is watched, in the order of the shares.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub(crate) enum Watched {
    /// The node of an attempt of this session.
    Own,
    /// What a waiter follows.
    Ahead,
    /// What an observer of an election follows.
    Leader,
}

/// A watch and its room, or none where there is no room.
pub(crate) struct Watch(pub(super) Option<(OneshotWatcher, OwnedSemaphorePermit)>);

/// The event of a watch, for several tasks to see. The client crate passes events on in the
/// server's order, but the tasks run in any order: a task that sees one event asks here whether
/// another one came before it.
#[derive(Clone, Debug)]
pub(crate) struct Event {
    event: Shared<BoxFuture<'static, EventType>>,
    /// `Shared` says *not yet* while another task polls it.
    one_asks: Arc<Mutex<()>>,
}

impl Watches {
    /// Makes the watches of a session; all room is free. The server's paths are longer by the
    /// chroot.
    pub(crate) fn new(chroot: &str) -> Self {
        let shares = [OWN_BYTES, AHEAD_BYTES, LEADER_BYTES];
        let shares = shares.map(|bytes| Arc::new(Semaphore::new(bytes)));
        Self { shares, chroot: chroot.len() }
    }

    /// Takes room for a path, if there is enough.
    pub(super) fn take(&self, path: &str, watched: Watched) -> Option<OwnedSemaphorePermit> {
        let bytes = u32::try_from(self.chroot + path.len()).ok()?;
        self.shares[watched as usize].clone().try_acquire_many_owned(bytes).ok()
    }
}

impl Event {
    pub(super) fn new(event: impl Future<Output = EventType> + Send + 'static) -> Self {
        Self { event: event.boxed().shared(), one_asks: Arc::default() }
    }

    /// Waits for the event.
    pub(crate) async fn wait(mut self) -> EventType {
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

impl Watch {
    /// Lets several tasks see the event.
    pub(crate) fn into_event(self) -> Event {
        Event::new(self.changed())
    }

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
                Clock::Boot.sleep(LOOK).await;
                EventType::NodeDataChanged
            }
        }
    }
}
