//! One attempt, from the request to the lease.

mod set;

use std::{sync::Arc, time::Duration};

use lock_core::{
    Attempt as Caller, Clock, Error, Instant, Lease, Request, Result, Ticket, Wait,
    keep::attempt::End, limit_conflict,
};

use crate::{
    MemoryStore,
    defect::Defect,
    lease::MemoryLease,
    session::{Session, attempt::Attempt},
    store::{
        detach::{self, Adopted},
        state::{Answer, Asked, Grant},
    },
};

impl Session {
    fn asked(&self, request: &Request, caller: &Caller) -> Asked {
        Asked {
            name: request.name.clone(),
            attempt: caller.id(),
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
        kept: &Arc<Attempt>,
        caller: &Caller,
        (sent, token): (Instant, u64),
    ) -> Result<Box<dyn Lease>> {
        let store = &self.client.store;
        let validity = kept.hold(store, sent).map_err(|end| {
            self.forget(kept);
            store.leave(&kept.name, kept.id);
            self.ended(end)
        })?;
        let lease = MemoryLease::new(self.clone(), kept.clone(), token, validity);
        if caller.is_cancelled() && store.has(Defect::KeepsGrantsOfTheDeparted) {
            return Err(Error::Contended { name: kept.name.clone() });
        }
        Ok(Box::new(lease))
    }

    /// Same as [`lease`](Self::lease), for an attempt that was granted at once.
    fn lease_of(
        self: &Arc<Self>,
        request: &Request,
        caller: &Caller,
        grant: Grant,
    ) -> Result<Box<dyn Lease>> {
        let kept = Attempt::new(caller.id(), request);
        if let Err(closed) = self.enter(&kept) {
            self.client.store.leave(&kept.name, kept.id);
            return Err(closed);
        }
        self.lease(&kept, caller, (grant.at, grant.token.value()))
    }

    /// Asks until there is a definite answer: a grant, or the attempt's end.
    async fn queue_up(
        &self,
        kept: &Attempt,
        asked: &Asked,
        request: &Request,
        caller: &Caller,
    ) -> Result<(Instant, u64)> {
        let (mut asked, mut told) = (asked.clone(), None);
        loop {
            let sent = Clock::Tokio.now();
            let answer = self.request("acquire", asked.ttl, |store| store.acquire(&asked)).await?;
            let look_again = match answer {
                Answer::Granted(grant) => return Ok((grant.at, grant.token.value())),
                Answer::Busy => return Err(Error::Contended { name: asked.name }),
                Answer::Gone => return Err(self.ended(End::Gone)),
                Answer::OtherLimit(found) => return Err(limit_conflict(request, found)),
                Answer::Waiting { position, look_again } => {
                    if told.replace(position) != Some(position)
                        && !self.client.store.has(Defect::WaitsInSilence)
                    {
                        caller.queued(&request.name, Some(position));
                    }
                    asked.known = true;
                    kept.waits(sent);
                    look_again
                }
            };
            tokio::select! {
                decided = kept.decided() => return decided.map_err(|end| self.ended(end)),
                () = caller.cancelled() => return Err(Error::Contended { name: asked.name }),
                // No push announces that the holder has expired.
                () = Clock::Tokio.sleep_until(look_again) => {}
            }
        }
    }

    pub(crate) async fn acquire(
        self: &Arc<Self>,
        request: Request,
        caller: Caller,
    ) -> Result<Box<dyn Lease>> {
        self.check_open()?;
        let (asked, kept) = (self.asked(&request, &caller), Attempt::new(caller.id(), &request));
        self.enter(&kept)?;
        let mut answer = self.queue_up(&kept, &asked, &request, &caller).await;
        if matches!(answer, Err(Error::Contended { .. }))
            && self.client.store.has(Defect::TriesForAWhile)
        {
            tokio::time::sleep(Duration::from_secs(2)).await;
            answer = self.queue_up(&kept, &asked, &request, &caller).await;
        }
        match answer {
            Ok(granted) => self.lease(&kept, &caller, granted),
            Err(error) => {
                self.forget(&kept);
                // Removes the effects of an unanswered request. They expire if the store cannot be
                // reached.
                let leave = |store: &MemoryStore| store.leave(&asked.name, asked.attempt);
                self.request("leave", request.ttl, leave).await?;
                Err(error)
            }
        }
    }

    pub(crate) async fn adopt(
        self: &Arc<Self>,
        request: Request,
        caller: Caller,
        ticket: Ticket,
    ) -> Result<Box<dyn Lease>> {
        self.check_open()?;
        let from = detach::read(&ticket)?;
        let asked = self.asked(&request, &caller);
        let adopt = |store: &MemoryStore| store.adopt(&asked, from, ticket.token());
        match self.request("adopt", request.ttl, adopt).await {
            Ok(Adopted::Done(grant)) => self.lease_of(&request, &caller, grant),
            Ok(Adopted::By(reason)) => Err(Error::Lost { name: request.name, reason }),
            Err(error) => {
                // Removes the effects of an unanswered request. They expire if the store cannot be
                // reached.
                let leave = |store: &MemoryStore| store.leave(&asked.name, asked.attempt);
                self.request("leave", request.ttl, leave).await?;
                Err(error)
            }
        }
    }
}
