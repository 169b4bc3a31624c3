//! Removes attempts from the server: a few at once by a request each, many together.

use std::sync::Arc;

use lock_core::{
    Clock, Instant, Result,
    keep::departures::{Departure, Departures, Removes, Sending},
};
use tokio::sync::oneshot;

use super::{Session, attempt::Attempt};
use crate::{
    error,
    wire::{answer, script, turns::Lane},
};

/// The most releases in flight with a request each. While there are that many, others go together.
pub(super) const ALONE: usize = 64;
/// The most leases that one request gives back. The server does nothing else meanwhile, for one to
/// three milliseconds.
const TOGETHER: usize = 200;

impl Session {
    /// Removes an attempt from the server: its place in the queue, or its lock. The session forgets
    /// it.
    ///
    /// # Errors
    ///
    /// Same as [`insist`](Self::insist).
    pub(crate) async fn remove(
        self: &Arc<Self>,
        attempt: &Arc<Attempt>,
        deadline: Instant,
    ) -> Result<()> {
        self.forget(attempt);
        if let Ok(_alone) = self.alone.try_acquire() {
            return self.remove_alone(attempt, deadline).await;
        }
        let (told, answer) = oneshot::channel();
        let departure = Departure { what: attempt.clone(), count: 1, deadline, told: Some(told) };
        if let Some(sending) = Sending::admit(self, departure, 1) {
            tokio::spawn(sending.run_all());
        }
        // The task ends early only if its runtime ends.
        answer.await.unwrap_or_else(|_| Err(error::closed()))
    }

    /// Removes attempts from the server in the background.
    pub(crate) fn remove_later(self: &Arc<Self>, attempts: &[Arc<Attempt>]) {
        for attempt in attempts {
            let (session, attempt) = (self.clone(), attempt.clone());
            // By then it has expired.
            let deadline = Clock::Boot.now() + attempt.ttl * 2;
            tokio::spawn(async move { drop(session.remove(&attempt, deadline).await) });
        }
    }

    async fn remove_alone(&self, attempt: &Attempt, deadline: Instant) -> Result<()> {
        let command = attempt.release(self.mode);
        let answer = self.insist(Lane::First, "release", &command, attempt.patience(), deadline);
        answer.await.map(drop)
    }
}

impl Removes for Session {
    type Leaving = Arc<Attempt>;

    fn departures(&self) -> &Departures<Arc<Attempt>> {
        &self.departures
    }

    async fn remove_next(self: &Arc<Self>) {
        let leaving = self.departures.take(TOGETHER);
        let Some(deadline) = leaving.iter().map(|one| one.deadline).min() else { return };
        let limit = leaving.iter().map(|one| one.what.patience()).min().unwrap_or_default();
        let attempts = leaving.iter().map(|one| (&one.what.key, &one.what.ticket, one.what.leads));
        let command = script::release_all(self.mode, attempts);
        let answer = self.insist(Lane::First, "release", &command, limit, deadline).await;
        let released = answer.and_then(|(_, value)| {
            let released = answer::released(&value, leaving.len());
            released.ok_or_else(|| error::unexpected("release", &value))
        });
        match released {
            Ok(released) => {
                for (one, released) in leaving.into_iter().zip(released) {
                    let result = match released {
                        true => Ok(()),
                        // A request for this name alone shows the error.
                        false => self.remove_alone(&one.what, one.deadline).await,
                    };
                    one.tell(result);
                }
            }
            Err(why) => self.departures.failed(leaving, &why, Clock::Boot.now()),
        }
    }
}
