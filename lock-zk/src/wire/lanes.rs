//! How many requests of a session are in flight at a time, and which go first.
//!
//! A server answers a session in order, so a request waits for all that were sent before. Requests
//! that can come in bursts wait in a lane first, in order and in this process. Renewals, releases
//! and revokes do not.

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
pub(crate) enum Lane {
    /// Goes before all others.
    First,
    Acquire,
    Try,
    Look,
}

/// The lanes of a session.
#[derive(Debug)]
pub(crate) struct Lanes([Arc<Semaphore>; 3]);

impl Lanes {
    pub(crate) fn new() -> Self {
        Self([ACQUIRES, TRIES, LOOKS].map(|count| Arc::new(Semaphore::new(count))))
    }

    /// Waits for a slot, which is taken until it is dropped. `Lane::First` needs none.
    pub(crate) async fn enter(&self, lane: Lane) -> Option<OwnedSemaphorePermit> {
        let Self([acquires, tries, looks]) = self;
        let slots = match lane {
            Lane::First => return None,
            Lane::Acquire => acquires,
            Lane::Try => tries,
            Lane::Look => looks,
        };
        // They are never closed.
        slots.clone().acquire_owned().await.ok()
    }
}
