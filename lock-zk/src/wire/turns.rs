//! How many requests of a session are in flight at a time, and which go first.
//!
//! A server answers a session in order, so a request waits for all that were sent before. Requests
//! that can come in bursts take a turn first, in order and in this process. Renewals, releases and
//! revokes take none.

use std::sync::Arc;

use tokio::sync::{OwnedSemaphorePermit, Semaphore};

/// How many acquires may wait for answers at the same time.
const ACQUIRES: usize = 128;
/// How many tries. They do not wait behind acquires, which may wait themselves.
const TRIES: usize = 32;
/// How many looks: requests of operators and observers, and diagnoses of waits in vain.
const LOOKS: usize = 64;

/// The purpose of a request.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub(crate) enum Turn {
    /// Goes before all others.
    First,
    Acquire,
    Try,
    Look,
}

/// The turns of a session.
#[derive(Debug)]
pub(crate) struct Turns([Arc<Semaphore>; 3]);

impl Turns {
    pub(crate) fn new() -> Self {
        Self([ACQUIRES, TRIES, LOOKS].map(|count| Arc::new(Semaphore::new(count))))
    }

    /// Waits for a turn, which lasts until it is dropped. `Turn::First` needs none.
    pub(crate) async fn take(&self, turn: Turn) -> Option<OwnedSemaphorePermit> {
        let Self([acquires, tries, looks]) = self;
        let turns = match turn {
            Turn::First => return None,
            Turn::Acquire => acquires,
            Turn::Try => tries,
            Turn::Look => looks,
        };
        // They are never closed.
        turns.clone().acquire_owned().await.ok()
    }
}
