//! Whose request is sent next: what is urgent does not wait for what asks for more.

use lock_core::Attempt;
use tokio::sync::{Semaphore, SemaphorePermit};

/// How many acquires and looks are in flight. More wait in this process, in order: what is urgent
/// waits for those, here and at the server, and on a busy machine mostly here. Enough for 25,000
/// per second at 2.5 ms.
const TURNS: usize = 64;

/// What a request waits for before it is sent.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub(crate) enum Lane {
    /// Nothing: renewals, conversions, releases, revokes.
    First,
    /// A turn: acquires and looks.
    Turn,
}

/// The permission to send; `None` if none is needed.
type Turn<'a> = Option<SemaphorePermit<'a>>;

/// How many more requests may be in flight that are not urgent.
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
