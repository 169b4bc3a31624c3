//! The guards of a client, and whether new ones are accepted.

use std::{
    fmt,
    sync::{Arc, Mutex, MutexGuard},
};

use crate::keep::poison::lock;

use tokio::sync::Notify;
use tokio_util::sync::CancellationToken;

/// The guards of a client, and whether new ones are accepted.
#[derive(Default)]
pub(crate) struct Drain {
    pub(crate) begun: CancellationToken,
    state: Mutex<State>,
    left: Notify,
}

#[derive(Default)]
struct State {
    guards: usize,
    has_begun: bool,
}

/// One guard, while it exists.
pub(crate) struct Stay(Arc<Drain>);

impl Drain {
    fn state(&self) -> MutexGuard<'_, State> {
        lock(&self.state)
    }

    /// Counts the guard of a new grant; `None` if the drain has begun.
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

    pub(crate) fn begin(&self) {
        // Before the waiters are woken: from here on the count only falls.
        self.state().has_begun = true;
        self.begun.cancel();
    }

    pub(crate) fn guards(&self) -> usize {
        self.state().guards
    }

    /// Waits until there is no guard any more.
    pub(crate) async fn empty(&self) {
        loop {
            let left = self.left.notified();
            tokio::pin!(left);
            // Registered before the check, so that no guard leaves unnoticed in between.
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

impl fmt::Debug for Stay {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Stay").finish_non_exhaustive()
    }
}
