//! One attempt, from the request to the lease.

mod set;

use std::{slice, sync::Arc, time::Duration};

use lock_core::{
    Clock, Error, Instant, Lease, Request, Result, Ticket,
    keep::{lease::LeaseState, ticket::unreadable},
    limit_conflict,
};
use uuid::Uuid;

use crate::{
    MemoryStore,
    defect::Defect,
    lease::MemoryLease,
    session::{Session, attempt::Attempt},
    store::state::{Answer, Asked, Grant},
};

impl Session {
    fn asked(&self, request: &Request, caller: &lock_core::Attempt) -> Asked {
        let (tell, network) = (self.client.tell.clone(), self.client.network.clone());
        Asked { request: request.clone(), attempt: caller.id(), known: false, tell, network }
    }

    /// Makes a lease of a grant, which is renewed from now on.
    fn lease(
        self: &Arc<Self>,
        attempt: &Arc<Attempt>,
        caller: &lock_core::Attempt,
        sent: Instant,
        token: u64,
    ) -> Result<Box<dyn Lease>> {
        let store = &self.client.store;
        let validity = attempt.hold(store, sent).map_err(|end| {
            self.forget(attempt);
            store.leave(&attempt.name, attempt.id);
            attempt.ended(end)
        })?;
        let state = LeaseState::new(attempt, token, validity);
        let lease = MemoryLease { session: self.clone(), attempt: attempt.clone(), state };
        if caller.is_cancelled() && store.hooks().keeps_of_the_departed(attempt.ttl) {
            return Err(Error::Contended { name: attempt.name.clone() });
        }
        Ok(Box::new(lease))
    }

    /// Same as [`lease`](Self::lease), for an attempt that was granted at once.
    fn lease_of(
        self: &Arc<Self>,
        request: &Request,
        caller: &lock_core::Attempt,
        grant: Grant,
    ) -> Result<Box<dyn Lease>> {
        let attempt = Attempt::new(caller.id(), request);
        self.enter(&attempt).inspect_err(|_| self.client.store.leave(&attempt.name, attempt.id))?;
        self.lease(&attempt, caller, grant.at, grant.token.value())
    }

    /// Asks until there is a definite answer: a grant, or the attempt's end.
    async fn queue_up(
        &self,
        attempt: &Attempt,
        asked: &Asked,
        caller: &lock_core::Attempt,
    ) -> Result<(Instant, u64)> {
        let (mut asked, mut told) = (asked.clone(), None);
        loop {
            let sent = Clock::Tokio.now();
            let answer = self.request("acquire", attempt.ttl, |store| store.acquire(&asked)).await;
            // A revoke that was told meanwhile says more.
            let answer = answer.map_err(|e| attempt.over().map_or(e, |end| attempt.ended(end)))?;
            let look_again = match answer {
                Answer::Granted(grant) => return Ok((grant.at, grant.token.value())),
                Answer::Busy => return Err(Error::Contended { name: attempt.name.clone() }),
                Answer::Gone => {
                    attempt.gone(Clock::Tokio.now());
                    return attempt.decided().await.map_err(|end| attempt.ended(end));
                }
                Answer::OtherLimit(found) => return Err(limit_conflict(&asked.request, found)),
                Answer::Waiting { position, look_again } => {
                    if told.replace(position) != Some(position)
                        && !self.client.store.has(Defect::WaitsInSilence)
                    {
                        caller.queued(&attempt.name, Some(position));
                    }
                    asked.known = true;
                    attempt.waits(sent);
                    look_again
                }
            };
            tokio::select! {
                decided = attempt.decided() => return decided.map_err(|end| attempt.ended(end)),
                () = caller.cancelled() => return Err(Error::Contended { name: attempt.name.clone() }),
                // No push announces that the holder has expired.
                () = Clock::Tokio.sleep_until(look_again) => {}
            }
        }
    }

    pub(crate) async fn acquire(
        self: &Arc<Self>,
        request: Request,
        caller: lock_core::Attempt,
    ) -> Result<Box<dyn Lease>> {
        self.client.check_open()?;
        let (asked, attempt) = (self.asked(&request, &caller), Attempt::new(caller.id(), &request));
        self.enter(&attempt)?;
        let mut answer = self.queue_up(&attempt, &asked, &caller).await;
        if matches!(answer, Err(Error::Contended { .. }))
            && self.client.store.has(Defect::TriesForAWhile)
        {
            tokio::time::sleep(Duration::from_secs(2)).await;
            answer = self.queue_up(&attempt, &asked, &caller).await;
        }
        match answer {
            Ok((sent, token)) => self.lease(&attempt, &caller, sent, token),
            Err(error) => {
                self.forget(&attempt);
                self.undo(slice::from_ref(&asked), request.ttl, error).await
            }
        }
    }

    pub(crate) async fn adopt(
        self: &Arc<Self>,
        request: Request,
        caller: lock_core::Attempt,
        ticket: Ticket,
    ) -> Result<Box<dyn Lease>> {
        self.client.check_open()?;
        let from = Uuid::try_parse(ticket.place())
            .map_err(|_| unreadable("memory", ticket.place(), "a UUID"))?;
        let asked = self.asked(&request, &caller);
        let adopt = |store: &MemoryStore| store.adopt(&asked, from, ticket.token());
        match self.request("adopt", request.ttl, adopt).await {
            Ok(Ok(grant)) => self.lease_of(&request, &caller, grant),
            Ok(Err(reason)) => Err(Error::Lost { name: request.name, reason }),
            Err(error) => self.undo(slice::from_ref(&asked), request.ttl, error).await,
        }
    }

    /// Removes the effects of an unanswered request, and returns its error. They expire if the
    /// store cannot be reached, which is the error then, unless the place was lost before.
    async fn undo<T>(&self, all: &[Asked], patience: Duration, error: Error) -> Result<T> {
        let left = self.request("leave", patience, |store| store.leave_all(all)).await;
        match error {
            Error::PlaceLost { .. } => Err(error),
            error => left.and(Err(error)),
        }
    }
}
