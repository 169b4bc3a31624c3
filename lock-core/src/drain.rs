//! The end of a connection in order: nobody new, and time for those who hold something.

use std::{
    fmt,
    sync::{
        Arc,
        atomic::{AtomicUsize, Ordering},
    },
    time::Duration,
};

use tokio::sync::Notify;
use tokio_util::sync::CancellationToken;

use crate::{ClosedBy, Error, Result, locks::Client};

/// Who holds something of a client, and whether anybody may still come.
#[derive(Default)]
pub(crate) struct Drain {
    begun: CancellationToken,
    guards: AtomicUsize,
    left: Notify,
}

/// One guard, as long as it is there.
pub(crate) struct Stay(Arc<Drain>);

impl Drain {
    pub(crate) fn enter(self: &Arc<Self>) -> Stay {
        self.guards.fetch_add(1, Ordering::AcqRel);
        Stay(self.clone())
    }

    fn guards(&self) -> usize {
        self.guards.load(Ordering::Acquire)
    }

    /// Waits until there is no guard any more.
    async fn empty(&self) {
        loop {
            let left = self.left.notified();
            tokio::pin!(left);
            // Registered before the look, so that nobody leaves unnoticed in between.
            left.as_mut().enable();
            if self.guards() == 0 {
                return;
            }
            left.await;
        }
    }
}

impl Drop for Stay {
    fn drop(&mut self) {
        if self.0.guards.fetch_sub(1, Ordering::AcqRel) == 1 {
            self.0.left.notify_waiters();
        }
    }
}

impl Client {
    /// An acquire, which is over when the connection is being drained: who still waits then is a
    /// newcomer, too.
    ///
    /// # Errors
    ///
    /// Its own, and [`Error::Closed`] by [`ClosedBy::Drain`].
    pub(crate) async fn unless_drained<T>(
        &self,
        acquire: impl Future<Output = Result<T>>,
    ) -> Result<T> {
        let refused = || {
            let store = self.driver.guarantees().store;
            Err(Error::Closed { store, by: ClosedBy::Drain })
        };
        if self.drain.begun.is_cancelled() {
            return refused();
        }
        tokio::select! {
            biased;
            acquired = acquire => acquired,
            () = self.drain.begun.cancelled() => refused(),
        }
    }

    /// Refuses newcomers, and waits for the guards that there are; how many are still there after
    /// `limit`.
    pub(crate) async fn drained(&self, limit: Duration) -> usize {
        self.drain.begun.cancel();
        let _ = tokio::time::timeout(limit, self.drain.empty()).await;
        self.drain.guards()
    }
}

impl fmt::Debug for Stay {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Stay").finish_non_exhaustive()
    }
}
