//! The order of requests: urgent ones do not wait for acquires and looks.

use lock_core::Attempt;
use tokio::sync::{Semaphore, SemaphorePermit};

/// The most acquires and looks in flight. More wait in this process, in order. Urgent requests wait
/// behind those in flight, here and at the server, and on a busy machine mostly here. Enough for
/// 25,000 per second at 2.5 ms.
const TURNS: usize = 64;

/// The condition for a request to be sent.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub(crate) enum Lane {
    /// Nothing: renewals, conversions, releases, revokes.
    First,
    /// A turn: acquires and looks.
    Turn,
}

/// The permission to send; `None` if none is needed.
type Turn<'a> = Option<SemaphorePermit<'a>>;

/// Permits for requests that are not urgent.
#[derive(Debug)]
pub(crate) struct Turns(Semaphore);

impl Default for Turns {
    fn default() -> Self {
        Self(Semaphore::new(TURNS))
    }
}

impl Turns {
    /// Waits for a turn; `None` if the caller is cancelled.
    pub(crate) async fn turn(&self, lane: Lane, caller: Option<&Attempt>) -> Option<Turn<'_>> {
        let turn = async {
            match lane {
                Lane::First => None,
                // It is never closed.
                Lane::Turn => self.0.acquire().await.ok(),
            }
        };
        match caller {
            None => Some(turn.await),
            Some(caller) => tokio::select! {
                biased;
                turn = turn => Some(turn),
                () = caller.cancelled() => None,
            },
        }
    }
}
