//! Removes what attempts leave behind: one at a time at once, many of them together.

use std::sync::Arc;

use lock_core::{Effect, Error, Instant, Result};
use tokio::sync::oneshot;

use super::{Session, attempt::Attempt, departures::Departure};
use crate::{error, layout::dialect::Dialect, wire::clock::CLOCK};

/// How many requests that remove attempts are on their way at once. Others go together when one of
/// them is answered.
fn requests(dialect: Dialect) -> usize {
    match dialect {
        // One write at a time.
        Dialect::Sqlite => 1,
        Dialect::MySql | Dialect::Postgres => 4,
    }
}

/// One of a janitor's requests. It ends with this, also if its future is dropped.
struct Sending {
    session: Arc<Session>,
    over: bool,
}

impl Sending {
    /// Sends one request, and the others in the background if more have come meanwhile.
    async fn run(mut self) {
        self.session.send_departures().await;
        if !self.finish_if_idle() {
            tokio::spawn(self.run_all());
        }
    }

    /// Sends requests until nobody waits for one.
    async fn run_all(mut self) {
        while !self.finish_if_idle() {
            self.session.send_departures().await;
        }
    }

    fn finish_if_idle(&mut self) -> bool {
        self.over = self.session.departures.finish_if_idle();
        self.over
    }
}

impl Drop for Sending {
    fn drop(&mut self) {
        if !self.over {
            self.session.departures.state().requests -= 1;
        }
    }
}

impl Session {
    /// Takes back whatever attempts have left: their places in the queues, or the locks. Later
    /// nobody knows them. `doubtful`: a request of theirs may still be under way.
    ///
    /// # Errors
    ///
    /// As [`insist`](Self::insist).
    pub(crate) async fn withdraw(
        self: &Arc<Self>,
        attempts: &[Arc<Attempt>],
        doubtful: bool,
        deadline: Instant,
    ) -> Result<()> {
        let (told, answer) = oneshot::channel();
        if let Some(sending) = self.depart(attempts.to_vec(), doubtful, deadline, Some(told)) {
            sending.run().await;
        }
        // Without an answer the runtime ends.
        answer.await.unwrap_or_else(|_| Err(error::closed(self.dialect())))
    }

    /// Removes in the background what attempts may have left that were made together.
    pub(crate) fn clean_up(self: &Arc<Self>, attempts: Vec<Arc<Attempt>>) {
        // By then they have expired.
        let longest = attempts.iter().map(|attempt| attempt.ttl).max().unwrap_or_default();
        if let Some(sending) = self.depart(attempts, true, CLOCK.now() + longest * 2, None) {
            tokio::spawn(sending.run_all());
        }
    }

    fn depart(
        self: &Arc<Self>,
        attempts: Vec<Arc<Attempt>>,
        doubtful: bool,
        deadline: Instant,
        told: Option<oneshot::Sender<Result<()>>>,
    ) -> Option<Sending> {
        let _busy = self.busy();
        attempts.iter().for_each(|attempt| self.forget(attempt));
        let departure = Departure { attempts, doubtful, deadline, _busy, told };
        let first = self.departures.admit(departure, requests(self.dialect()));
        first.then(|| Sending { session: self.clone(), over: false })
    }

    /// Removes the attempts of those that come next, and tells them. Those with time left wait for
    /// another request if the database did not answer this one.
    async fn send_departures(&self) {
        let now = CLOCK.now();
        let (late, batch): (Vec<_>, Vec<_>) =
            self.departures.take().into_iter().partition(|departure| departure.deadline <= now);
        late.into_iter().for_each(|departure| departure.tell(Err(self.too_late())));
        let Some(deadline) = batch.iter().map(|departure| departure.deadline).min() else { return };
        let doubtful = batch.iter().any(|departure| departure.doubtful);
        let attempts: Vec<_> =
            batch.iter().flat_map(|departure| departure.attempts.clone()).collect();
        let left = self.leave("release", &attempts, doubtful, deadline).await;
        let now = CLOCK.now();
        for departure in batch {
            match &left {
                Ok(()) => departure.tell(Ok(())),
                Err(Error::Unavailable { .. }) if departure.deadline > now => {
                    self.departures.state().waiting.push_back(departure);
                }
                Err(error) => departure.tell(Err(error::same(self.dialect(), error))),
            }
        }
    }

    /// For a departure that no request has reached in time.
    fn too_late(&self) -> Error {
        let why = "the database did not answer before the entry expired";
        error::unavailable(self.dialect(), "release", Effect::None, why)
    }
}
