//! The state of one watched name.

use std::{collections::HashMap, sync::Arc, time::Duration};

use lock_core::{Instant, Validity};
use tokio::sync::oneshot;
use uuid::Uuid;

use crate::queue::view::Queue;

/// When to list a name whose watch is new, each counted from the one before. If a watch begins at a
/// revision that is not the newest any more, etcd files it under "unsynced". etcd looks at those
/// every 100 ms, and does not tell the client. So a new watch is not relied on until its first
/// event or the end of these steps. The lists bound the delay for a waiter.
pub(crate) const STEPS: [Duration; 3] =
    [Duration::from_millis(5), Duration::from_millis(20), Duration::from_millis(80)];

/// When to list a far name, each counted from the one before. The first of these lists finds a bell
/// that left the queue out of order just before its watch began. The second one has our own keys
/// watched, too.
pub(crate) const FAR_STEPS: [Duration; 2] = [Duration::from_secs(2), LINGER];

/// How long a name stays watched after its last waiter has left: meanwhile waiters need not
/// wait for a new watch.
pub(crate) const LINGER: Duration = Duration::from_secs(5);

/// How often to list a name that is held but has no waiters.
pub(crate) const HELD: Duration = Duration::from_secs(60);

/// The message to a waiter.
#[derive(Clone, Debug, Eq, PartialEq)]
pub(crate) enum WaitEnd {
    /// It has the lock.
    Yours,
    /// Its entry is gone.
    Gone,
    /// etcd does not let us watch the queue any more, for this reason.
    Denied(Arc<str>),
}

/// What a watch tells its observer. The observer then reads the queue.
pub(crate) enum Hint {
    /// Something in the queue has changed.
    Changed,
    /// etcd refused the watch on this generation of the connection: the login has expired, or may
    /// not read the queue.
    Refused(u64),
}

/// An attempt of ours in a watched queue.
pub(crate) enum Mine {
    Waiting(Uuid, oneshot::Sender<WaitEnd>),
    /// It was told, and has not taken the lock yet, or left.
    Told(Uuid),
    Holding(Validity),
}

impl Mine {
    /// Tells a waiting attempt how its wait ends. One that has left needs no message.
    pub(crate) fn tell(&mut self, end: WaitEnd) {
        if let Self::Waiting(attempt, _) = *self
            && let Self::Waiting(_, tell) = std::mem::replace(self, Self::Told(attempt))
        {
            _ = tell.send(end);
        }
    }
}

/// What is watched of a far name in place of its queue.
pub(crate) struct Bell {
    /// The key of the entry whose deletion says that our first attempt comes near.
    pub(crate) key: Vec<u8>,
    /// The revision at which its watch began; 0 if it has not.
    pub(crate) began: i64,
    /// Whether our first attempt had just entered when it was hung. A crowd that enters must not
    /// list as well, so then its entries are believed to go in order.
    pub(crate) is_new: bool,
    /// The watches of this key, and of our own keys.
    pub(crate) watches: HashMap<Vec<u8>, i64>,
}

/// One watched name.
#[derive(Default)]
pub(crate) struct Watched {
    pub(crate) queue: Queue<Mine>,
    pub(crate) watch: Option<i64>,
    /// There is one as long as the name is far. Then its queue has no watch.
    pub(crate) bell: Option<Bell>,
    /// Whether it was far: the next attempt will be, too, and needs no watch of the queue.
    pub(crate) crowded: bool,
    /// How many releases of others its watch has told since the last attempt left.
    pub(crate) told_idle: usize,
    /// The generation of the connection on which etcd refused its watch. A list must show whether
    /// the login may read the queue.
    pub(crate) refused: Option<u64>,
    /// Whether the login may not watch it.
    pub(crate) denied: bool,
    /// When etcd first refused the login for its watch, unless the watch has begun since then.
    pub(crate) locked: Option<Instant>,
    /// The revision at which the watch begins; 0 is "now".
    pub(crate) start: i64,
    /// How many of [`STEPS`], or [`FAR_STEPS`], are done.
    pub(crate) step: usize,
    /// How often to list while an attempt waits: watches have lost events before (etcd#18089). `None`
    /// if no attempt has waited here.
    pub(crate) poll: Option<Duration>,
    pub(crate) due: Option<Instant>,
    pub(crate) listing: bool,
}

impl Watched {
    /// Whether an attempt waits here.
    pub(crate) fn is_waited(&self) -> bool {
        self.queue.mine().any(|mine| matches!(mine, Mine::Waiting(..)))
    }

    /// Whether it needs no watch: no attempt of ours is left, or each has lost its lock.
    pub(crate) fn is_over(&self) -> bool {
        let is_lost = |mine: &Mine| matches!(mine, Mine::Holding(validity) if validity.has_ended());
        self.queue.mine().all(is_lost)
    }

    /// Notes that it is not watched any more: deletions may go unnoticed. Returns its watches.
    pub(crate) fn unwatched(&mut self) -> Vec<i64> {
        self.queue.watch_ended();
        let bell = self.bell.take().into_iter().flat_map(|bell| bell.watches.into_values());
        self.watch.take().into_iter().chain(bell).collect()
    }

    /// Whether neither its queue nor its bell is watched.
    pub(crate) fn is_unwatched(&self) -> bool {
        self.watch.is_none() && self.bell.is_none()
    }

    /// Returns when to list it next.
    pub(crate) fn next_poll(&self, now: Instant) -> Instant {
        let steps: &[Duration] = if self.bell.is_some() { &FAR_STEPS } else { &STEPS };
        let wait = match self.is_waited() {
            true => steps.get(self.step).copied().or(self.poll).unwrap_or(LINGER),
            false => HELD,
        };
        now + wait
    }
}
