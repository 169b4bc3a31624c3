//! What the store granted.

use std::{
    sync::{
        Arc,
        atomic::{AtomicU64, Ordering},
    },
    time::Duration,
};

use async_trait::async_trait;
use lock_core::{
    Clock, Error, FencingToken, Instant, Lease, LockName, LossReason, Request, Result, Term,
    Validity,
};
use uuid::Uuid;

use crate::{
    defect::Defect,
    session::Session,
    store::state::{Grant, Upgrade},
};

#[derive(Debug)]
pub(crate) struct MemoryLease {
    session: Arc<Session>,
    name: LockName,
    attempt: Uuid,
    ttl: Duration,
    token: AtomicU64,
    validity: Validity,
}

impl MemoryLease {
    pub(crate) fn new(
        session: Arc<Session>,
        request: &Request,
        attempt: Uuid,
        grant: Grant,
        validity: Validity,
    ) -> Self {
        let (name, ttl) = (request.name.clone(), request.ttl);
        let token = grant.token.value().into();
        Self { session, name, attempt, ttl, token, validity }
    }
}

impl MemoryLease {
    fn gone(&self) -> Error {
        self.validity.lose(LossReason::EntryGone);
        Error::Lost { name: self.name.clone(), reason: LossReason::EntryGone }
    }
}

#[async_trait]
impl Lease for MemoryLease {
    fn token(&self) -> FencingToken {
        FencingToken::new(self.token.load(Ordering::Acquire))
    }

    fn validity(&self) -> &Validity {
        &self.validity
    }

    async fn renew(&self) -> Result<()> {
        let sent = Clock::Tokio.now();
        let renew = |store: &crate::MemoryStore| store.renew(&self.name, self.attempt);
        if self.session.request("renew", self.ttl, renew).await? {
            self.validity.extend(self.session.until(sent, self.ttl, Term::Fixed));
            return Ok(());
        }
        Err(self.gone())
    }

    async fn downgrade(&self) -> Result<()> {
        let downgrade = |store: &crate::MemoryStore| store.downgrade(&self.name, self.attempt);
        match self.session.request("downgrade", self.ttl, downgrade).await? {
            true => Ok(()),
            false => Err(self.gone()),
        }
    }

    async fn try_upgrade(&self) -> Result<bool> {
        let upgrade = |store: &crate::MemoryStore| store.try_upgrade(&self.name, self.attempt);
        match self.session.request("upgrade", self.ttl, upgrade).await? {
            Upgrade::Busy => Ok(false),
            Upgrade::Gone => Err(self.gone()),
            Upgrade::Done(token) => {
                self.token.store(token.value(), Ordering::Release);
                Ok(true)
            }
        }
    }

    async fn publish(&self, value: &[u8]) -> Result<()> {
        let publish = |store: &crate::MemoryStore| store.publish(&self.name, self.attempt, value);
        match self.session.request("publish", self.ttl, publish).await? {
            true => Ok(()),
            false => Err(self.gone()),
        }
    }

    async fn detach(&self) -> Result<String> {
        self.session.forget(self.attempt);
        let to = Uuid::new_v4();
        let detach = |store: &crate::MemoryStore| store.detach(&self.name, self.attempt, to);
        match self.session.request("detach", self.ttl, detach).await? {
            true => Ok(to.simple().to_string()),
            false => Err(self.gone()),
        }
    }

    /// It has a time limit of its own in the store.
    fn ends_by_itself(&self) -> bool {
        true
    }

    async fn release(&self) -> Result<()> {
        if self.session.client.store.has(Defect::KeepsTheUncollected)
            && self.validity.loss() == Some(LossReason::NotCollected)
        {
            let kept = Validity::new(&self.name, Instant::NEVER);
            return self.session.hold(self.attempt, &self.name, self.ttl, &kept, Term::Renewed);
        }
        self.session.forget(self.attempt);
        let release = |store: &crate::MemoryStore| store.release(&self.name, self.attempt);
        // Out of reach for a TTL, the entry has gone by itself.
        self.session.request("release", self.ttl, release).await
    }
}
