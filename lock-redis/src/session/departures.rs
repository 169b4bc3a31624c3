//! What attempts have left behind, until it is given back.

use std::{
    collections::VecDeque,
    sync::{Arc, Mutex, MutexGuard, PoisonError},
};

use lock_core::{Instant, Result};
use tokio::sync::{Semaphore, oneshot};

use super::attempt::Attempt;

/// How many releases are on their way by themselves. While there are that many, others go together.
const ALONE: usize = 64;
/// How many leases one request gives back. The server does nothing else meanwhile, for one to three
/// milliseconds.
const TOGETHER: usize = 200;

/// What is to be given back: each by a request of its own while they are few, many by one request
/// while they are many.
#[derive(Debug)]
pub(super) struct Departures {
    pub(super) alone: Semaphore,
    pending: Mutex<Pending>,
}

#[derive(Debug, Default)]
struct Pending {
    leaving: VecDeque<Departure>,
    /// Whether a task takes care of them.
    running: bool,
}

#[derive(Debug)]
pub(super) struct Departure {
    pub(super) attempt: Arc<Attempt>,
    pub(super) deadline: Instant,
    pub(super) done: oneshot::Sender<Result<()>>,
}

impl Default for Departures {
    fn default() -> Self {
        Self { alone: Semaphore::new(ALONE), pending: Mutex::default() }
    }
}

impl Departures {
    fn pending(&self) -> MutexGuard<'_, Pending> {
        // Nothing panics while it holds this.
        self.pending.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Returns whether a task must be started.
    pub(super) fn put(&self, leaving: impl IntoIterator<Item = Departure>) -> bool {
        let mut pending = self.pending();
        pending.leaving.extend(leaving);
        !std::mem::replace(&mut pending.running, true)
    }

    pub(super) fn take(&self) -> Vec<Departure> {
        let mut pending = self.pending();
        let count = pending.leaving.len().min(TOGETHER);
        pending.running = count > 0;
        pending.leaving.drain(..count).collect()
    }
}
