//! Takes back what attempts have left on the server: one at a time at once, many of them together.

use std::sync::Arc;

use lock_core::{Error, Instant, Result};
use tokio::sync::oneshot;

use super::{Session, attempt::Attempt, departures::Departure};
use crate::{
    error,
    wire::{answer, clock::CLOCK, script, turns::Lane},
};

impl Session {
    /// Takes back whatever an attempt has left on the server: its place in the queue, or the lock.
    /// Later the attempt is not known any more.
    ///
    /// # Errors
    ///
    /// As [`insist`](Self::insist).
    pub(crate) async fn withdraw(
        self: &Arc<Self>,
        attempt: &Arc<Attempt>,
        deadline: Instant,
    ) -> Result<()> {
        self.forget(attempt);
        if let Ok(_alone) = self.departures.alone.try_acquire() {
            return self.withdraw_alone(attempt, deadline).await;
        }
        let (done, is_done) = oneshot::channel();
        if self.departures.put([Departure { attempt: attempt.clone(), deadline, done }]) {
            tokio::spawn(clean(self.clone()));
        }
        // The task ends early with its runtime only.
        is_done.await.unwrap_or_else(|_| Err(error::closed()))
    }

    async fn withdraw_alone(&self, attempt: &Attempt, deadline: Instant) -> Result<()> {
        let command = attempt.release(self.mode);
        let answer =
            self.insist(Lane::First, "release", &command, attempt.patience(), deadline, None);
        answer.await.map(drop)
    }

    async fn withdraw_all(&self, leaving: Vec<Departure>) {
        // There is at least one.
        let deadline = leaving.iter().map(|one| one.deadline).min().unwrap_or_default();
        let limit = leaving.iter().map(|one| one.attempt.patience()).min().unwrap_or_default();
        let attempts =
            leaving.iter().map(|one| (&one.attempt.key, &one.attempt.ticket, one.attempt.leads));
        let command = script::release_all(self.mode, attempts);
        let answer = self.insist(Lane::First, "release", &command, limit, deadline, None).await;
        match answer.and_then(|(_, value)| answer::released(&value, leaving.len())) {
            Ok(released) => {
                for (one, released) in leaving.into_iter().zip(released) {
                    let result = match released {
                        true => Ok(()),
                        // What is wrong with this name is said to a request of its own.
                        false => self.withdraw_alone(&one.attempt, one.deadline).await,
                    };
                    // A caller that has left does not hear of it.
                    let _ = one.done.send(result);
                }
            }
            Err(why) => self.not_withdrawn(leaving, &why),
        }
    }

    /// Another deadline than the first one may leave time to try again.
    fn not_withdrawn(&self, leaving: Vec<Departure>, why: &Error) {
        let now = CLOCK.now();
        let outage = matches!(why, Error::Unavailable { .. });
        let (again, over): (Vec<_>, Vec<_>) =
            leaving.into_iter().partition(|one| outage && one.deadline > now);
        // This task runs already.
        self.departures.put(again);
        for one in over {
            let _ = one.done.send(Err(error::again(why)));
        }
    }
}

async fn clean(session: Arc<Session>) {
    loop {
        let leaving = session.departures.take();
        if leaving.is_empty() {
            return;
        }
        session.withdraw_all(leaving).await;
    }
}
