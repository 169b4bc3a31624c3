//! The guards of a client, and whether new ones are accepted.

use tokio::sync::watch;
use tokio_util::sync::CancellationToken;

/// The guards of a client, and whether new ones are accepted.
#[derive(Default)]
pub(crate) struct Drain {
    pub(crate) begun: CancellationToken,
    /// Whether it has begun. It counts its receivers, and reports when there is none.
    guards: watch::Sender<bool>,
}

/// One guard, while it exists.
pub(crate) type Stay = watch::Receiver<bool>;

impl Drain {
    /// Counts the guard of a new grant; `None` if the drain has begun.
    pub(crate) fn enter(&self) -> Option<Stay> {
        // Counted under the lock of the look: a drain counts no newcomer that is refused.
        let has_begun = self.guards.borrow();
        (!*has_begun).then(|| self.enter_again())
    }

    /// Counts one more guard of a grant that has one.
    pub(crate) fn enter_again(&self) -> Stay {
        self.guards.subscribe()
    }

    pub(crate) fn guards(&self) -> usize {
        self.guards.receiver_count()
    }

    /// Begins, and waits until there is no guard any more.
    pub(crate) async fn run(&self) {
        // Before the waiters are woken: from here on nobody is counted but an owner's next guards.
        self.guards.send_modify(|has_begun| *has_begun = true);
        self.begun.cancel();
        self.guards.closed().await;
    }
}
