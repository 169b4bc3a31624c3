//! Removes what attempts leave behind, dropped ones too: a few one by one, many together.

use std::sync::Arc;

use lock_core::{
    Clock, Effect, Error, Instant, Result,
    keep::{
        departures::{Departure, Departures, Removes, Sending},
        errors::{shared, unavailable},
    },
};
use tokio::sync::oneshot;

use super::{
    Session,
    attempt::{Attempt, Leaving},
};
use crate::layout::dialect::Dialect;

/// Most attempts that one request removes. PostgreSQL finds the next attempts of each of their
/// queues, and keeps others out of these queues meanwhile.
const TOGETHER: usize = 100;

/// Most requests on their way at once that remove attempts. Further attempts leave together when
/// one of them is answered.
fn requests(dialect: Dialect) -> usize {
    match dialect {
        // One write at a time.
        Dialect::Sqlite => 1,
        Dialect::MySql | Dialect::Postgres => 4,
    }
}

impl Session {
    /// Removes what attempts have left: their places in the queues, or the locks. The session
    /// forgets the attempts. `doubtful`: a request of theirs may still be under way.
    pub(crate) async fn remove(
        self: &Arc<Self>,
        attempts: &[Arc<Attempt>],
        doubtful: bool,
        deadline: Instant,
    ) -> Result<()> {
        let (reply, answer) = oneshot::channel();
        if let Some(sending) = self.depart(attempts.to_vec(), doubtful, deadline, Some(reply)) {
            sending.run().await;
        }
        // There is no answer only if the runtime ends.
        answer.await.unwrap_or_else(|_| Err(Error::closed(self.dialect().store())))
    }

    /// Removes in the background what attempts of one request may have left.
    pub(crate) fn remove_later(self: &Arc<Self>, attempts: Vec<Arc<Attempt>>) {
        // By this deadline they have expired.
        let longest = attempts.iter().map(|attempt| attempt.ttl).max().unwrap_or_default();
        if let Some(sending) = self.depart(attempts, true, Clock::Boot.now() + longest * 2, None) {
            tokio::spawn(sending.run_all());
        }
    }

    fn depart(
        self: &Arc<Self>,
        attempts: Vec<Arc<Attempt>>,
        doubtful: bool,
        deadline: Instant,
        reply: Option<oneshot::Sender<Result<()>>>,
    ) -> Option<Sending<Self>> {
        let _busy = self.busy().ok();
        attempts.iter().for_each(|attempt| self.book().forget(attempt));
        let count = attempts.len();
        let what = Leaving { attempts, doubtful, _busy };
        Sending::admit(self, Departure { what, count, deadline, reply }, requests(self.dialect()))
    }
}

impl Removes for Session {
    type Leaving = Leaving;

    fn departures(&self) -> &Departures<Leaving> {
        &self.departures
    }

    async fn remove_next(self: &Arc<Self>) {
        let now = Clock::Boot.now();
        let (late, batch): (Vec<_>, Vec<_>) =
            self.departures.take(TOGETHER).into_iter().partition(|one| one.deadline <= now);
        for one in late {
            let why = "the database did not answer before the entry expired";
            one.tell(Err(unavailable(self.dialect().store(), "release", Effect::None, why)));
        }
        let Some(deadline) = batch.iter().map(|one| one.deadline).min() else { return };
        let doubtful = batch.iter().any(|one| one.what.doubtful);
        let attempts: Vec<_> = batch.iter().flat_map(|one| one.what.attempts.clone()).collect();
        match self.leave("release", &attempts, doubtful, deadline).await {
            Ok(()) => batch.into_iter().for_each(|one| one.tell(Ok(()))),
            Err(why) => self.departures.failed(batch, &shared(why), Clock::Boot.now()),
        }
    }
}
