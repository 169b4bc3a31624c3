//! A client of the store.

use std::{sync::Arc, time::Duration};

use async_trait::async_trait;
use lock_core::{
    Attempt, Clock, DistributedLock, Entry, Error, Fairness, Fencing, FencingToken, FixedTerm,
    Guarantees, Lease, LockKind, LockName, LossSignal, Observed, Overlap, Reach, Request, Result,
    Ticket, TokenFloor, Validity, Wait, Wake, limit_conflict,
};

use tokio::sync::mpsc;
use uuid::Uuid;

use crate::{
    MemoryStore,
    defect::Defect,
    detach::{self, Adopted},
    lease::MemoryLease,
    session::Session,
    state::{Answer, Grant, Wish},
};

/// One client of a [`MemoryStore`]: like a process of its own, with a network of its own.
#[derive(Debug)]
pub struct MemoryLock {
    pub(crate) session: Arc<Session>,
    guarantees: Guarantees,
}

impl MemoryStore {
    /// Connects. For blocking locks: `blocking::Locks::new(|| store.client())`.
    ///
    /// # Panics
    ///
    /// If it is called outside a tokio runtime.
    pub fn client(&self) -> MemoryLock {
        MemoryLock { session: Session::start(self.clone()), guarantees: guarantees() }
    }

    pub(crate) fn client_with(&self, default_ttl: Option<Duration>) -> Result<MemoryLock> {
        let mut client = self.client();
        if let Some(ttl) = default_ttl {
            client.guarantees.check_ttl(ttl)?;
            client.guarantees.default_ttl = ttl;
        }
        Ok(client)
    }
}

fn guarantees() -> Guarantees {
    let mut guarantees = Guarantees::least("memory");
    guarantees.kinds = LockKind::ALL;
    guarantees.survives.restart = true;
    guarantees.survives.failover = true;
    guarantees.overlaps = vec![Overlap::Revoked, Overlap::Deleted];
    guarantees.fairness = Fairness::Fifo;
    guarantees.wake = Wake::Push;
    guarantees.fencing = Fencing::Strict("a counter of the store");
    guarantees.loss = LossSignal::Push;
    guarantees.fixed_term = FixedTerm::Server;
    guarantees.names_at_once = usize::MAX;
    guarantees.detach = true;
    guarantees.ttl = Duration::from_millis(200)..=Duration::from_secs(24 * 3600);
    guarantees
}

impl MemoryLock {
    fn wish(&self, request: &Request, attempt: &Attempt) -> Wish {
        Wish {
            name: request.name.clone(),
            attempt: attempt.id(),
            kind: request.kind,
            value: request.value.clone(),
            holder: request.holder.clone(),
            ttl: request.ttl,
            queue: request.wait == Wait::Queue,
            known: false,
            tell: self.session.tell.clone(),
            network: self.session.network.clone(),
        }
    }

    /// Makes a lease of a grant, which is renewed from now on.
    fn hold(&self, request: &Request, attempt: &Attempt, grant: Grant) -> Result<Box<dyn Lease>> {
        let (session, id) = (&self.session, attempt.id());
        let until = session.until(grant.at, request.ttl, request.term);
        let validity = Validity::new(&request.name, until);
        let held = session.hold(id, &request.name, request.ttl, &validity, request.term);
        if let Err(closed) = held {
            session.store.leave(&request.name, id);
            return Err(closed);
        }
        let lease = MemoryLease::new(session.clone(), request, id, grant, validity);
        if attempt.is_cancelled() && session.store.has(Defect::KeepsGrantsOfTheDeparted) {
            return Err(Error::Contended { name: request.name.clone() });
        }
        Ok(Box::new(lease))
    }

    /// Asks until there is a definite answer: a grant, or the attempt's end.
    async fn queue_up(&self, wish: &Wish, request: &Request, attempt: &Attempt) -> Result<Grant> {
        let (mut wish, mut told) = (wish.clone(), None);
        loop {
            let pushed = self.session.wait(wish.attempt, &wish.name, wish.ttl)?;
            let answer =
                self.session.request("acquire", wish.ttl, |store| store.acquire(&wish)).await?;
            let look_again = match answer {
                Answer::Granted(grant) => return Ok(grant),
                Answer::Busy => return Err(Error::Contended { name: wish.name }),
                Answer::Gone => return Err(entry_expired()),
                Answer::OtherLimit(found) => return Err(limit_conflict(request, found)),
                Answer::Waiting { position, look_again } => {
                    if told.replace(position) != Some(position)
                        && !self.session.store.has(Defect::WaitsInSilence)
                    {
                        attempt.queued(&request.name, Some(position));
                    }
                    wish.known = true;
                    self.session.known(wish.attempt);
                    look_again
                }
            };
            tokio::select! {
                grant = pushed => {
                    self.session.check_open()?;
                    return grant.ok().flatten().ok_or_else(entry_expired);
                }
                () = attempt.cancelled() => return Err(Error::Contended { name: wish.name }),
                // Nobody else tells that the holder has expired.
                () = Clock::Tokio.sleep_until(look_again) => {}
            }
        }
    }
}

fn entry_expired() -> Error {
    Error::PlaceLost { store: "memory" }
}

#[async_trait]
impl DistributedLock for MemoryLock {
    fn guarantees(&self) -> &Guarantees {
        &self.guarantees
    }

    fn clock(&self) -> Clock {
        Clock::Tokio
    }

    fn reach(&self) -> Option<Reach> {
        Some(self.session.reach.clone())
    }

    async fn acquire(&self, request: Request, attempt: Attempt) -> Result<Box<dyn Lease>> {
        self.session.check_open()?;
        let wish = self.wish(&request, &attempt);
        let mut answer = self.queue_up(&wish, &request, &attempt).await;
        if matches!(answer, Err(Error::Contended { .. }))
            && self.session.store.has(Defect::TriesForAWhile)
        {
            tokio::time::sleep(Duration::from_secs(2)).await;
            answer = self.queue_up(&wish, &request, &attempt).await;
        }
        match answer {
            Ok(grant) => self.hold(&request, &attempt, grant),
            Err(error) => {
                self.session.forget(attempt.id());
                // Whatever an unanswered request left behind goes now, or expires if the store
                // cannot be reached.
                let leave = |store: &MemoryStore| store.leave(&wish.name, wish.attempt);
                self.session.request("leave", request.ttl, leave).await?;
                Err(error)
            }
        }
    }

    async fn try_all(&self, wishes: Vec<lock_core::Wish>) -> Result<Option<Vec<Box<dyn Lease>>>> {
        self.session.check_open()?;
        let ttl = wishes.iter().map(|(request, _)| request.ttl).min().unwrap_or_default();
        let all: Vec<_> =
            wishes.iter().map(|(request, attempt)| self.wish(request, attempt)).collect();
        let leave = |store: &MemoryStore| {
            all.iter().for_each(|wish| store.leave(&wish.name, wish.attempt));
        };
        match self.session.request("acquire", ttl, |store| store.try_all(&all)).await {
            Ok(Some(grants)) => {
                let hold = |((request, attempt), grant): (&lock_core::Wish, Grant)| {
                    self.hold(request, attempt, grant)
                };
                let leases = wishes.iter().zip(grants).map(hold).collect::<Result<_>>();
                // The session has been closed meanwhile.
                if leases.is_err() {
                    leave(&self.session.store);
                }
                leases.map(Some)
            }
            Ok(None) => Ok(None),
            Err(error) => {
                self.session.request("leave", ttl, leave).await?;
                Err(error)
            }
        }
    }

    async fn adopt(
        &self,
        request: Request,
        attempt: Attempt,
        ticket: Ticket,
    ) -> Result<Box<dyn Lease>> {
        self.session.check_open()?;
        let from = detach::read(&ticket)?;
        let wish = self.wish(&request, &attempt);
        let adopt = |store: &MemoryStore| store.adopt(&wish, from, ticket.token());
        match self.session.request("adopt", request.ttl, adopt).await {
            Ok(Adopted::Done(grant)) => self.hold(&request, &attempt, grant),
            Ok(Adopted::By(reason)) => Err(Error::Lost { name: request.name, reason }),
            Err(error) => {
                // What an unanswered request has done is undone, or expires if the store cannot be
                // reached.
                let leave = |store: &MemoryStore| store.leave(&wish.name, wish.attempt);
                self.session.request("leave", request.ttl, leave).await?;
                Err(error)
            }
        }
    }

    async fn inspect(&self, name: &LockName) -> Result<Vec<Entry>> {
        self.session.check_open()?;
        self.session
            .request("inspect", self.guarantees.default_ttl, |store| store.inspect(name))
            .await
    }

    async fn observe(&self, name: &LockName) -> Result<mpsc::Receiver<Observed>> {
        self.session.check_open()?;
        let observe = |store: &MemoryStore| store.observe(name);
        let limit = self.guarantees.default_ttl;
        let changes = self.session.request("observe", limit, observe).await?;
        Ok(self.session.observe(name.clone(), changes))
    }

    async fn names(&self, prefix: &str) -> Result<Vec<LockName>> {
        self.session.check_open()?;
        self.session
            .request("names", self.guarantees.default_ttl, |store| store.names(prefix))
            .await
    }

    async fn revoke(&self, name: &LockName, attempt: Uuid) -> Result<bool> {
        self.session.check_open()?;
        let mut revoked = false;
        // Sent again, it finds nothing that the first one has revoked.
        let revoke = |store: &MemoryStore| {
            revoked |= store.revoke(name, attempt);
            revoked
        };
        self.session.request("revoke", self.guarantees.default_ttl, revoke).await
    }

    async fn token_floor(&self) -> Result<TokenFloor> {
        self.session.check_open()?;
        let ask = |store: &MemoryStore| store.token_floor();
        self.session.request("token floor", self.guarantees.default_ttl, ask).await
    }

    async fn raise_token_floor(&self, above: FencingToken) -> Result<TokenFloor> {
        self.session.check_open()?;
        let raise = |store: &MemoryStore| store.raise_token_floor(above);
        self.session.request("raise the token floor", self.guarantees.default_ttl, raise).await
    }

    async fn close(&self) -> Result<()> {
        let left = self.session.end();
        let leave = |store: &MemoryStore| {
            left.iter().for_each(|(attempt, name)| store.leave(name, *attempt));
        };
        self.session.request("close", self.guarantees.default_ttl, leave).await
    }
}
