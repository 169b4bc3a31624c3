//! The end of a connection in order: nobody new, and time for those who hold something.

use std::{
    fmt,
    sync::{Arc, Mutex, MutexGuard, PoisonError},
    time::Duration,
};

use tokio::sync::Notify;
use tokio_util::sync::CancellationToken;

use crate::{ClosedBy, Error, LossReason, Result, api::locks::Client};

/// Who holds something of a client, and whether anybody may still come.
#[derive(Default)]
pub(crate) struct Drain {
    begun: CancellationToken,
    state: Mutex<State>,
    left: Notify,
}

#[derive(Default)]
struct State {
    guards: usize,
    has_begun: bool,
}

/// One guard, as long as it is there.
pub(crate) struct Stay(Arc<Drain>);

impl Drain {
    fn state(&self) -> MutexGuard<'_, State> {
        // Nothing panics while it is held.
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Counts the guard of a new grant; `None` if the drain has begun, and nobody waits for it.
    pub(crate) fn enter(self: &Arc<Self>) -> Option<Stay> {
        let mut state = self.state();
        (!state.has_begun).then(|| {
            state.guards += 1;
            Stay(self.clone())
        })
    }

    /// Counts one more guard of a grant that has one.
    pub(crate) fn enter_again(self: &Arc<Self>) -> Stay {
        self.state().guards += 1;
        Stay(self.clone())
    }

    fn begin(&self) {
        // Before anybody is woken: from here on the count only falls.
        self.state().has_begun = true;
        self.begun.cancel();
    }

    fn guards(&self) -> usize {
        self.state().guards
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
        let guards = {
            let mut state = self.0.state();
            state.guards = state.guards.saturating_sub(1);
            state.guards
        };
        if guards == 0 {
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
        if self.drain.begun.is_cancelled() {
            return Err(self.drained_error());
        }
        tokio::select! {
            biased;
            acquired = acquire => acquired.map_err(|error| self.of_newcomer(error)),
            () = self.drain.begun.cancelled() => Err(self.drained_error()),
        }
    }

    /// What a newcomer is told.
    pub(crate) fn drained_error(&self) -> Error {
        Error::Closed { store: self.driver.guarantees().store, by: ClosedBy::Drain }
    }

    /// What the caller of an acquire is told who met the close after a drain: it is no loss to
    /// somebody who never held the lock.
    pub(crate) fn of_newcomer(&self, error: Error) -> Error {
        let by_close = matches!(
            error,
            Error::Lost { reason: LossReason::Closed, .. }
                | Error::Closed { by: ClosedBy::Program, .. }
        );
        match by_close && self.drain.begun.is_cancelled() {
            true => self.drained_error(),
            false => error,
        }
    }

    /// Refuses newcomers, and waits for the guards that there are; how many are still there after
    /// `limit`, or when the connection is closed or its runtime ends.
    pub(crate) async fn drained(&self, limit: Duration) -> usize {
        self.drain.begin();
        tokio::select! {
            biased;
            () = self.drain.empty() => {}
            () = self.closed.cancelled() => {}
            () = self.home.ended().cancelled_owned() => {}
            () = tokio::time::sleep(limit) => {}
        }
        self.drain.guards()
    }
}

impl fmt::Debug for Stay {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Stay").finish_non_exhaustive()
    }
}
