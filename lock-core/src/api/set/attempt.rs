//! All locks of a set by one request, or one after the other.

use std::{mem, sync::Arc, time::Duration};

use futures_util::future::join_all;
use tracing::Instrument;

use crate::{
    Attempt, BoxFuture, Error, Held, Instant, Lease, Lock, LockGuard, LockSet, LockSetGuard,
    Request, Result, Wait, Wish,
    api::{
        client::Client,
        diagnose::DIAGNOSIS_LIMIT,
        lock::{
            attempt::{ANSWER_LIMIT, Unanswered},
            tries::Tries,
        },
    },
    driver::{meter, trace},
    machine::finish::Finishing,
};

impl LockSet {
    /// The whole of an acquire. It goes on while its caller does not poll: locks that it has taken
    /// must not wait for the caller.
    pub(super) async fn finished(
        &self,
        work: BoxFuture<'static, Result<LockSetGuard>>,
    ) -> Result<LockSetGuard> {
        let (caller, busy) = (Attempt::of(&self.lock.client.heard), self.busy());
        let left = caller.clone();
        let work = async move {
            tokio::select! {
                biased;
                // The caller has left and does not see it.
                () = left.cancelled() => Err(busy),
                done = work => done,
            }
        };
        let finishing = || {
            let finishing = Finishing::new(&self.lock.client.home, work).cancelling(caller);
            finishing.collected_within(self.lock.request.ttl, |held| held?.not_collected())
        };
        let held = self.lock.client.unless_drained(None, finishing).await?;
        held.check().map_err(|lost| self.lock.client.of_newcomer(lost))?;
        held.at_least(self.lock.at_least);
        Ok(held)
    }

    /// Waits for all of the locks, and begins anew after an outage if it waits through outages: the
    /// locks that it held are lost then, too.
    pub(super) async fn granted(&self) -> Result<LockSetGuard> {
        let Client { home, drain, .. } = &*self.lock.client;
        let (started, mut tries) = (home.clock.now(), Tries::new(self.lock.through_outages));
        let until = self.lock.wait.map_or(Instant::NEVER, |limit| started + limit);
        loop {
            // In order, each lock counts by itself.
            let (answer, counts) = match self.at_once_in_time(until).await {
                Ok(Some(held)) => return Ok(held),
                Ok(None) | Err(Error::Contended { .. }) => {
                    (Box::pin(self.in_order(started)).await, false)
                }
                Err(error) => (Err(error), true),
            };
            let Err(error) = &answer else { return answer };
            let left = until.since(home.clock.now());
            let pause = match left.is_zero() {
                true => None,
                false => tries.after(error, &self.lock.request.name),
            };
            let Some(pause) = pause else {
                if counts {
                    self.note_failure(error);
                }
                return answer;
            };
            self.lock.client.pause(pause.min(left), drain.begun.cancelled()).await;
            if drain.begun.is_cancelled() {
                return Err(self.lock.client.drained_error());
            }
        }
    }

    /// Counts a request for all of the locks that failed: once, with the kind of the first.
    pub(super) fn note_failure(&self, error: &Error) {
        if let Some(first) = self.each().next() {
            first.note_failure(error);
        }
    }

    /// Like [`at_once`](Self::at_once), within the limit of the wait, which ends at `until`. A grant
    /// of the last moment is still better than a timeout.
    async fn at_once_in_time(&self, until: Instant) -> Result<Option<LockSetGuard>> {
        let limit = match self.lock.wait {
            None => return self.at_once().await,
            Some(Duration::ZERO) => return self.try_at_once("acquire").await,
            Some(_) => until.since(self.lock.client.home.clock.now()) + DIAGNOSIS_LIMIT,
        };
        self.lock.client.answer(limit, self.at_once(), "acquire").await
    }

    /// Like [`at_once`](Self::at_once), as a try.
    pub(super) async fn try_at_once(&self, op: &'static str) -> Result<Option<LockSetGuard>> {
        let first = self.each().next();
        let unanswered = first.as_ref().map(Unanswered);
        let answer = self.lock.client.answer(ANSWER_LIMIT, self.at_once(), op).await;
        mem::forget(unanswered);
        answer
    }

    /// Takes all of the locks by one request; [`Error::Contended`] if not all are free, `None` if
    /// the store takes them only one after the other. Dropping it leaves nothing behind.
    pub(super) async fn at_once(&self) -> Result<Option<LockSetGuard>> {
        let client = &self.lock.client;
        let guarantees = client.driver.guarantees();
        // A set of one lock takes the path of a plain lock.
        let at_once = if self.alone_too { 1 } else { 2 }..=guarantees.names_at_once;
        if !at_once.contains(&self.members.len()) {
            return Ok(None);
        }
        let caller = Attempt::of(&client.heard);
        let wish = |lock: Lock| {
            let mut request = lock.request;
            request.wait = Wait::Try;
            (request, caller.another())
        };
        let wishes: Vec<_> = self.each().map(wish).collect();
        let (first, attempt) = &wishes[0];
        let span = trace::attempt(&first.name, guarantees.store, attempt.id());
        let work = grant_all(client.clone(), wishes, self.lock.max_hold).instrument(span);
        Finishing::new(&client.home, work).cancelling(caller).await
    }

    async fn in_order(&self, started: Instant) -> Result<LockSetGuard> {
        let clock = self.lock.client.home.clock;
        let mut held = LockSetGuard::new(Vec::new());
        for mut lock in self.each() {
            if let Some(limit) = self.lock.wait.filter(|limit| !limit.is_zero()) {
                let left = (started + limit).since(clock.now());
                // Zero would try once, however long that takes.
                lock.wait = Some(left.max(Duration::from_nanos(1)));
            }
            match held.while_valid(Box::pin(lock.acquire())).await? {
                Ok(guard) => held.push(guard),
                // The limit was for all of them.
                Err(Error::WaitTimeout { name, holder, position, .. }) => {
                    let waited = clock.now().since(started);
                    return Err(Error::WaitTimeout { name, waited, holder, position });
                }
                Err(error) => return Err(held.given_back(error).await),
            }
        }
        Ok(held)
    }

    pub(super) async fn try_in_order(&self) -> Result<LockSetGuard> {
        let mut held = LockSetGuard::new(Vec::new());
        for lock in self.each() {
            match lock.try_acquire().await {
                Ok(Some(guard)) => held.push(guard),
                Ok(None) => {
                    // The result is "busy", whether or not the release succeeds.
                    let _ = held.release().await;
                    return Err(self.busy());
                }
                Err(error) => return Err(held.given_back(error).await),
            }
        }
        Ok(held)
    }
}

/// One request for all, from the request to the guards.
async fn grant_all(
    client: Arc<Client>,
    wishes: Vec<Wish>,
    max_hold: Option<Duration>,
) -> Result<Option<LockSetGuard>> {
    let started = client.home.clock.now();
    let store = client.driver.guarantees().store;
    wishes.iter().for_each(|(request, _)| meter::zeros(store, request));
    let answer = client.driver.try_all(wishes.clone()).await;
    // A cancelled attempt ends without an answer of the store.
    if answer.is_ok() && !wishes.iter().any(|(_, attempt)| attempt.is_cancelled()) {
        client.heard.hear();
    }
    let leases = match answer {
        Ok(Some(leases)) => leases,
        Ok(None) => {
            let busy = |request: &Request| Error::Contended { name: request.name.clone() };
            for (request, attempt) in &wishes {
                trace::refused(&request.name, attempt.id(), &busy(request));
            }
            return Err(busy(&wishes[0].0));
        }
        Err(Error::Unsupported { .. }) => return Ok(None),
        Err(error) => {
            let refused = |(request, attempt): &Wish| {
                trace::refused(&request.name, attempt.id(), &error);
            };
            wishes.iter().for_each(refused);
            client.after_close().await;
            return Err(error);
        }
    };
    let now = client.home.clock.now();
    let guard = |((request, attempt), lease): (Wish, Box<dyn Lease>)| {
        let waited = now.since(started);
        trace::granted(&request.name, attempt.id(), lease.token(), waited);
        meter::granted(store, &request, waited);
        LockGuard::of_grant(Held::begin(client.clone(), &request, lease, max_hold))
    };
    // If the caller has left, the guards are dropped with the result: released at once. All guards
    // are made before one of them is checked: a lease without a guard would not be given back.
    let guards = join_all(wishes.into_iter().zip(leases).map(guard)).await;
    Ok(Some(LockSetGuard::new(guards.into_iter().collect::<Result<_>>()?)))
}
