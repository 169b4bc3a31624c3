//! The order of requests: urgent ones do not wait for acquires and looks.

use lock_core::{Attempt, keep::cancel::unless_cancelled};
use tokio::sync::{Semaphore, SemaphorePermit};

/// The most acquires and looks in flight. More wait in this process, in order. Urgent requests wait
/// behind those in flight, here and at the server, and on a busy machine mostly here. Enough for
/// 25,000 per second at 2.5 ms.
pub(crate) const TURNS: usize = 64;

/// What a request needs before it is sent.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub(crate) enum Lane {
    /// Nothing: renewals, conversions, releases, revokes.
    Urgent,
    /// A turn: acquires and looks.
    Turn,
}

impl Lane {
    /// Waits for a turn, if one is needed; `None` if the caller is cancelled.
    pub(crate) async fn turn<'a>(
        self,
        turns: &'a Semaphore,
        caller: Option<&Attempt>,
    ) -> Option<Option<SemaphorePermit<'a>>> {
        let turn = async {
            match self {
                Self::Urgent => None,
                // It is never closed.
                Self::Turn => turns.acquire().await.ok(),
            }
        };
        unless_cancelled(caller, turn).await
    }
}
