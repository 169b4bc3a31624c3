//! The guards of a client, and whether new ones are accepted.

use tokio::sync::watch;
use tokio_util::sync::CancellationToken;

/// The guards of a client, and whether new ones are accepted.
#[derive(Default)]
pub(crate) struct Drain {
    pub(crate) begun: CancellationToken,
    /// Counts its receivers, and reports when there is none.
    guards: watch::Sender<()>,
}

/// One guard, while it exists.
pub(crate) type Stay = watch::Receiver<()>;

impl Drain {
    /// Counts the guard of a new grant; `None` if the drain has begun.
    pub(crate) fn enter(&self) -> Option<Stay> {
        // Counted before the look, so that a drain that begins in between waits for it.
        let stay = self.enter_again();
        (!self.begun.is_cancelled()).then_some(stay)
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
        self.begun.cancel();
        self.guards.closed().await;
    }
}
