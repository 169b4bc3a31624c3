//! One attempt, from the request to the lease.

mod set;

use std::{sync::Arc, time::Duration};

use lock_core::{
    Attempt, Clock, Error, Lease, Request, Result, Ticket, Validity, Wait, limit_conflict,
};

use crate::{
    MemoryStore,
    defect::Defect,
    lease::MemoryLease,
    session::Session,
    store::{
        detach::{self, Adopted},
        state::{Answer, Asked, Grant},
    },
};

impl Session {
    fn asked(&self, request: &Request, attempt: &Attempt) -> Asked {
        Asked {
            name: request.name.clone(),
            attempt: attempt.id(),
            kind: request.kind,
            value: request.value.clone(),
            holder: request.holder.clone(),
            ttl: request.ttl,
            queue: request.wait == Wait::Queue,
            known: false,
            tell: self.client.tell.clone(),
            network: self.client.network.clone(),
        }
    }

    /// Makes a lease of a grant, which is renewed from now on.
    fn lease(
        self: &Arc<Self>,
        request: &Request,
        attempt: &Attempt,
        grant: Grant,
    ) -> Result<Box<dyn Lease>> {
        let id = attempt.id();
        let until = self.until(grant.at, request.ttl, request.term);
        let validity = Validity::new(&request.name, until);
        let held = self.hold(id, &request.name, request.ttl, &validity, request.term);
        if let Err(closed) = held {
            self.client.store.leave(&request.name, id);
            return Err(closed);
        }
        let lease = MemoryLease::new(self.clone(), request, id, grant, validity);
        if attempt.is_cancelled() && self.client.store.has(Defect::KeepsGrantsOfTheDeparted) {
            return Err(Error::Contended { name: request.name.clone() });
        }
        Ok(Box::new(lease))
    }

    /// Asks until there is a definite answer: a grant, or the attempt's end.
    async fn queue_up(&self, asked: &Asked, request: &Request, attempt: &Attempt) -> Result<Grant> {
        let (mut asked, mut told) = (asked.clone(), None);
        loop {
            let pushed = self.wait(asked.attempt, &asked.name, asked.ttl)?;
            let answer = self.request("acquire", asked.ttl, |store| store.acquire(&asked)).await?;
            let look_again = match answer {
                Answer::Granted(grant) => return Ok(grant),
                Answer::Busy => return Err(Error::Contended { name: asked.name }),
                Answer::Gone => return Err(entry_expired()),
                Answer::OtherLimit(found) => return Err(limit_conflict(request, found)),
                Answer::Waiting { position, look_again } => {
                    if told.replace(position) != Some(position)
                        && !self.client.store.has(Defect::WaitsInSilence)
                    {
                        attempt.queued(&request.name, Some(position));
                    }
                    asked.known = true;
                    self.known(asked.attempt);
                    look_again
                }
            };
            tokio::select! {
                grant = pushed => {
                    self.check_open()?;
                    return grant.ok().flatten().ok_or_else(entry_expired);
                }
                () = attempt.cancelled() => return Err(Error::Contended { name: asked.name }),
                // Nobody else tells that the holder has expired.
                () = Clock::Tokio.sleep_until(look_again) => {}
            }
        }
    }

    pub(crate) async fn acquire(
        self: &Arc<Self>,
        request: Request,
        attempt: Attempt,
    ) -> Result<Box<dyn Lease>> {
        self.check_open()?;
        let asked = self.asked(&request, &attempt);
        let mut answer = self.queue_up(&asked, &request, &attempt).await;
        if matches!(answer, Err(Error::Contended { .. }))
            && self.client.store.has(Defect::TriesForAWhile)
        {
            tokio::time::sleep(Duration::from_secs(2)).await;
            answer = self.queue_up(&asked, &request, &attempt).await;
        }
        match answer {
            Ok(grant) => self.lease(&request, &attempt, grant),
            Err(error) => {
                self.forget(attempt.id());
                // Whatever an unanswered request left behind goes now, or expires if the store
                // cannot be reached.
                let leave = |store: &MemoryStore| store.leave(&asked.name, asked.attempt);
                self.request("leave", request.ttl, leave).await?;
                Err(error)
            }
        }
    }

    pub(crate) async fn adopt(
        self: &Arc<Self>,
        request: Request,
        attempt: Attempt,
        ticket: Ticket,
    ) -> Result<Box<dyn Lease>> {
        self.check_open()?;
        let from = detach::read(&ticket)?;
        let asked = self.asked(&request, &attempt);
        let adopt = |store: &MemoryStore| store.adopt(&asked, from, ticket.token());
        match self.request("adopt", request.ttl, adopt).await {
            Ok(Adopted::Done(grant)) => self.lease(&request, &attempt, grant),
            Ok(Adopted::By(reason)) => Err(Error::Lost { name: request.name, reason }),
            Err(error) => {
                // What an unanswered request has done is undone, or expires if the store cannot be
                // reached.
                let leave = |store: &MemoryStore| store.leave(&asked.name, asked.attempt);
                self.request("leave", request.ttl, leave).await?;
                Err(error)
            }
        }
    }
}

fn entry_expired() -> Error {
    Error::PlaceLost { store: "memory" }
}
