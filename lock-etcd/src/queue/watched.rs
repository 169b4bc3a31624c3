//! What there is to know of one watched name.

use std::{sync::Arc, time::Duration};

use lock_core::{Instant, Validity};
use tokio::sync::oneshot;
use uuid::Uuid;

use crate::queue::view::Queue;

/// When to list a name whose watch is new, counted from the time before. etcd files a watch that
/// begins at a revision which is not the newest any more under "unsynced" and looks at those every
/// 100 ms; nothing tells the client. So a new watch is not relied on until its first event, or
/// until that time is over, and these lists bound what that costs a waiter.
pub(crate) const STEPS: [Duration; 3] =
    [Duration::from_millis(5), Duration::from_millis(20), Duration::from_millis(80)];

/// How long a name stays watched after its last waiter has left: as long as it is hot, nobody has
/// to wait for a new watch.
pub(crate) const LINGER: Duration = Duration::from_secs(5);

/// How often to list a name that is held and not waited for.
pub(crate) const HELD: Duration = Duration::from_secs(60);

/// What a waiter is told.
#[derive(Clone, Debug, Eq, PartialEq)]
pub(crate) enum Told {
    /// The lock is its.
    Yours,
    /// Its entry has vanished.
    Gone,
    /// etcd does not let us watch the queue any more: why.
    Denied(Arc<str>),
}

/// An attempt of ours in a watched queue.
#[derive(Debug)]
pub(crate) enum Mine {
    Waiting(Uuid, oneshot::Sender<Told>),
    /// It was told that it is its turn and has not answered yet.
    Granted(Uuid),
    Holding(Validity),
}

/// One watched name.
#[derive(Debug)]
pub(crate) struct Watched {
    pub(crate) queue: Queue<Mine>,
    pub(crate) watch: Option<i64>,
    /// It cannot be watched for want of rights.
    pub(crate) denied: bool,
    /// The watch begins here; 0 is "now".
    pub(crate) start: i64,
    /// How many of [`STEPS`] are done.
    pub(crate) step: usize,
    /// How often to list while somebody waits: watches have lost events before (etcd#18089).
    pub(crate) poll: Duration,
    pub(crate) due: Option<Instant>,
    pub(crate) listing: bool,
    /// The last list was older than what is known: ask the whole cluster next time.
    pub(crate) stale: bool,
    /// Somebody waited here.
    pub(crate) hot: bool,
}

impl Watched {
    /// Whether somebody waits here.
    pub(crate) fn is_waited(&self) -> bool {
        self.queue.mine().any(|mine| matches!(mine, Mine::Waiting(..)))
    }

    /// Whether nothing here needs a watch: none of ours is left, or each has lost its lock.
    pub(crate) fn is_over(&self) -> bool {
        let is_lost = |mine: &Mine| matches!(mine, Mine::Holding(validity) if validity.has_ended());
        self.queue.mine().all(is_lost)
    }

    /// Its watch is gone: deletions may go unnoticed.
    pub(crate) fn unwatched(&mut self) {
        self.queue.watch_ended();
        self.watch = None;
    }

    /// When to list it next.
    pub(crate) fn next_poll(&self, now: Instant) -> Instant {
        let wait = match self.is_waited() {
            true => STEPS.get(self.step).copied().unwrap_or(self.poll),
            false => HELD,
        };
        now + wait
    }
}

impl Default for Watched {
    fn default() -> Self {
        Self {
            queue: Queue::default(),
            watch: None,
            denied: false,
            start: 0,
            step: 0,
            poll: LINGER,
            due: None,
            listing: false,
            stale: false,
            hot: false,
        }
    }
}
