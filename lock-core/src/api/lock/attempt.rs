//! One attempt, from the request to the guard.

use std::{mem, sync::Arc, time::Duration};

use tracing::{Instrument, Span};

use super::tries::Tries;
use crate::{
    Attempt, ConnectionState, Error, Held, Lease, Lock, LockGuard, Request, Result, Wait,
    api::{client::Client, diagnose::DIAGNOSIS_LIMIT},
    driver::{meter, trace},
    machine::{ended_waits::Found, finish::Finishing},
};

/// The longest time that [`Lock::try_acquire`] takes.
pub(crate) const ANSWER_LIMIT: Duration = Duration::from_secs(5);

impl Lock {
    /// [`acquire`](Self::acquire) without an owner.
    pub(crate) async fn wait_alone(&self) -> Result<LockGuard> {
        let granted = match self.wait {
            None => self.attempt(Wait::Queue, self.new_attempt()).await,
            Some(Duration::ZERO) => Box::pin(self.at_once()).await,
            Some(limit) => Box::pin(self.within(limit)).await,
        };
        granted.inspect_err(|error| self.note_failure(error))
    }

    /// [`try_acquire`](Self::try_acquire) without an owner.
    pub(crate) async fn try_alone(&self) -> Result<Option<LockGuard>> {
        let attempt = self.attempt(Wait::Try, self.new_attempt());
        let unanswered = Unanswered(self);
        let answer = self.client.answer(ANSWER_LIMIT, attempt, "try_acquire").await;
        mem::forget(unanswered);
        match answer {
            Ok(guard) => Ok(Some(guard)),
            Err(Error::Contended { .. }) => Ok(None),
            Err(error) => {
                self.note_failure(&error);
                Err(error)
            }
        }
    }

    /// Counts an acquire that ends with this error, unless the lock was busy.
    pub(crate) fn note_failure(&self, error: &Error) {
        meter::acquire_failed(self.client.driver.guarantees().store, &self.request, error);
    }

    fn new_attempt(&self) -> Attempt {
        Attempt::of(&self.client.heard)
    }

    /// One attempt, from the request to the guard, owned so that dropping it is safe anywhere.
    async fn attempt(&self, wait: Wait, attempt: Attempt) -> Result<LockGuard> {
        let store = self.client.driver.guarantees().store;
        let span = trace::attempt(&self.request.name, store, attempt.id());
        let granting = || self.granting(wait, attempt.clone(), span);
        let guard = self.client.unless_drained(Some(&attempt), granting).await?;
        // Lost since it was granted, while the caller did not poll.
        let valid = guard.check();
        self.client.after_loss(&valid).await;
        valid.map_err(|lost| self.client.of_newcomer(lost))?;
        // Only once the caller has it: a grant for a caller that has left is given back at once.
        self.keep_at_least(&guard);
        Ok(guard)
    }

    /// Sets the minimum hold time of a grant, if there is one.
    pub(crate) fn keep_at_least(&self, guard: &LockGuard) {
        if !self.at_least.is_zero() {
            guard.at_least(guard.granted() + self.at_least);
        }
    }

    /// Not `async`: so the work is compiled in this crate alone.
    fn granting(&self, wait: Wait, attempt: Attempt, span: Span) -> Finishing<LockGuard> {
        let mut request = self.request.clone();
        request.wait = wait;
        let tries = Tries::new(self.through_outages);
        let work = grant(self.client.clone(), request, attempt.clone(), tries, self.max_hold);
        Finishing::new(&self.client.home, work.instrument(span))
            .cancelling(attempt)
            .collected_within(self.request.ttl, |granted| Err(granted?.not_collected()))
    }

    async fn at_once(&self) -> Result<LockGuard> {
        let attempt = self.new_attempt();
        let (id, started) = (attempt.id(), self.client.home.clock.now());
        let unanswered = Unanswered(self);
        let answer = tokio::time::timeout(ANSWER_LIMIT, self.attempt(Wait::Try, attempt)).await;
        mem::forget(unanswered);
        match answer {
            Ok(Err(Error::Contended { .. })) => {
                let found = self.client.in_the_way(&self.request.name, id).await;
                Err(self.in_vain(Duration::ZERO, found.unwrap_or_default()))
            }
            Ok(answer) => answer,
            // Slow, but reachable: the store has answered other requests meanwhile.
            Err(_) if self.client.heard.since(started) => {
                Err(self.in_vain(ANSWER_LIMIT, Found::default()))
            }
            Err(_) => Err(self.client.unanswered(ANSWER_LIMIT, "acquire")),
        }
    }

    async fn within(&self, limit: Duration) -> Result<LockGuard> {
        let started = self.client.home.clock.now();
        let attempt = self.new_attempt();
        let granted = self.attempt(Wait::Queue, attempt.clone());
        tokio::pin!(granted);
        if let Ok(answer) = tokio::time::timeout(limit, &mut granted).await {
            return answer;
        }
        let waited = self.client.home.clock.now().since(started);
        let found = tokio::select! {
            biased;
            // A grant of the last moment is still better than a timeout.
            answer = &mut granted => return answer,
            found = self.client.in_the_way(&self.request.name, attempt.present_id()) => found,
        };
        let refused = attempt.take_refusal();
        match (found, refused) {
            // The store says that it is granted already; the answer to the attempt is on its way.
            (Some(Found { place: Some(0), .. }), _) => {
                let answer = tokio::time::timeout(DIAGNOSIS_LIMIT, granted).await;
                answer.unwrap_or_else(|_| Err(self.in_vain(waited, Found::default())))
            }
            // An outage: the store shows no holder, and has refused the request.
            (Some(Found { holder: None, place: None }), Some(why)) => {
                Err(self.client.unavailable("acquire", why))
            }
            (Some(found), _) => Err(self.in_vain(waited, found)),
            (None, Some(why)) if attempt.is_in_outage() => {
                Err(self.client.unavailable("acquire", why))
            }
            // Slow, but reachable: the store has answered others, or told this attempt to wait.
            (None, _) if self.client.heard.since(started) => {
                Err(self.in_vain(waited, Found::default()))
            }
            (None, Some(why)) => Err(self.client.unavailable("acquire", why)),
            (None, None) => {
                let limit = limit.saturating_add(DIAGNOSIS_LIMIT);
                Err(self.client.unanswered(limit, "acquire"))
            }
        }
    }

    pub(crate) fn in_vain(&self, waited: Duration, found: Found) -> Error {
        meter::timed_out(self.client.driver.guarantees().store, &self.request);
        Error::WaitTimeout {
            name: self.request.name.clone(),
            waited,
            holder: found.holder.map(Box::new),
            position: found.place,
        }
    }
}

/// A try without an answer. In an outage, one that its caller drops has failed.
pub(crate) struct Unanswered<'a>(pub(crate) &'a Lock);

impl Drop for Unanswered<'_> {
    fn drop(&mut self) {
        let lock = self.0;
        if matches!(lock.client.reach.now(), ConnectionState::Disconnected(_)) {
            lock.note_failure(&lock.client.unanswered(Duration::ZERO, "acquire"));
        }
    }
}

/// Asks the driver; a waiter asks again, as another attempt, after the errors that it outlasts.
async fn ask(
    client: &Client,
    request: &Request,
    attempt: &mut Attempt,
    mut tries: Tries,
) -> Result<Box<dyn Lease>> {
    loop {
        let answer = client.driver.acquire(request.clone(), attempt.clone()).await;
        let Err(error) = &answer else { return answer };
        if request.wait == Wait::Try || attempt.is_cancelled() {
            return answer;
        }
        let Some(pause) = tries.after(error, &request.name) else { return answer };
        match error {
            Error::InvalidOption { .. } => client.heard.hear(),
            // For the error at the end of a limited wait.
            Error::Unavailable { source, .. } => attempt.outlasts(source),
            _ => {}
        }
        // After a close, the driver says so.
        Box::pin(client.pause(pause, attempt.cancelled())).await;
        if attempt.is_cancelled() {
            return answer;
        }
        attempt.begin_anew();
    }
}

async fn grant(
    client: Arc<Client>,
    request: Request,
    mut attempt: Attempt,
    tries: Tries,
    max_hold: Option<Duration>,
) -> Result<LockGuard> {
    let store = client.driver.guarantees().store;
    let started = client.home.clock.now();
    let answer = {
        let _waiting = meter::Waiting::begin(store, &request);
        ask(&client, &request, &mut attempt, tries).await
    };
    // A cancelled attempt ends without an answer of the store.
    let answered =
        !attempt.is_cancelled() && matches!(answer, Ok(_) | Err(Error::Contended { .. }));
    if answered {
        client.heard.hear();
    }
    match answer {
        Ok(lease) => {
            let waited = client.home.clock.now().since(started);
            trace::granted(&request.name, attempt.id(), lease.token(), waited);
            meter::granted(store, &request, waited);
            // If the caller has left, the guard is dropped with the result: the lock is released at
            // once.
            LockGuard::of_grant(Held::begin(client, &request, lease, max_hold)).await
        }
        Err(error) => {
            trace::refused(&request.name, attempt.id(), &error);
            if answered {
                meter::contended(store, &request);
            }
            client.after_close().await;
            Err(error)
        }
    }
}
