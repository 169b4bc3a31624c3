//! What attempts have left behind, until it is removed.

use std::{
    collections::VecDeque,
    sync::{Arc, Mutex, MutexGuard, PoisonError},
};

use lock_core::{Instant, Result};
use tokio::sync::{OwnedRwLockReadGuard, oneshot};

use crate::session::attempt::Attempt;

/// How many attempts one request removes. PostgreSQL asks for each of their queues who is next, and
/// keeps others out of them meanwhile.
const TOGETHER: usize = 100;

/// What is to be removed.
#[derive(Debug, Default)]
pub(crate) struct Departures(Mutex<State>);

#[derive(Debug, Default)]
pub(super) struct State {
    pub(super) waiting: VecDeque<Departure>,
    pub(super) requests: usize,
}

/// Attempts that leave together.
#[derive(Debug)]
pub(super) struct Departure {
    pub(super) attempts: Vec<Arc<Attempt>>,
    /// A request of theirs may still be under way.
    pub(super) doubtful: bool,
    pub(super) deadline: Instant,
    /// `close` waits for this.
    pub(super) _busy: Option<OwnedRwLockReadGuard<()>>,
    /// Nobody, for what is cleaned up in the background.
    pub(super) told: Option<oneshot::Sender<Result<()>>>,
}

impl Departure {
    pub(super) fn tell(self, result: Result<()>) {
        if let Some(told) = self.told {
            // Who has left does not hear it.
            let _ = told.send(result);
        }
    }
}

impl Departures {
    pub(super) fn state(&self) -> MutexGuard<'_, State> {
        // Nothing panics while it is held.
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Takes a departure in. Answers whether the caller is to send a request.
    pub(super) fn admit(&self, departure: Departure, most: usize) -> bool {
        let mut state = self.state();
        state.waiting.push_back(departure);
        let free = state.requests < most;
        state.requests += usize::from(free);
        free
    }

    /// Those that leave with the next request.
    pub(super) fn take(&self) -> Vec<Departure> {
        let mut state = self.state();
        let (mut taken, mut room) = (Vec::new(), TOGETHER);
        while let Some(next) = state.waiting.front() {
            if !taken.is_empty() && next.attempts.len() > room {
                break;
            }
            room = room.saturating_sub(next.attempts.len());
            taken.extend(state.waiting.pop_front());
        }
        taken
    }

    /// Ends a request if nothing waits for another one.
    pub(super) fn finish_if_idle(&self) -> bool {
        let mut state = self.state();
        let idle = state.waiting.is_empty();
        state.requests -= usize::from(idle);
        idle
    }
}
