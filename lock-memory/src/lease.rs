//! The lease of a granted lock.

use std::sync::{
    Arc,
    atomic::{AtomicU64, Ordering},
};

use async_trait::async_trait;
use lock_core::{
    Clock, Error, FencingToken, Lease, LockName, LossReason, Result, Validity,
    deadline::safe_until, keep::attempt::Progress,
};
use uuid::Uuid;

use crate::{
    MemoryStore,
    defect::Defect,
    session::{Session, attempt::Attempt},
    store::state::Upgrade,
};

#[derive(Debug)]
pub(crate) struct MemoryLease {
    session: Arc<Session>,
    attempt: Arc<Attempt>,
    token: AtomicU64,
    validity: Validity,
}

impl MemoryLease {
    pub(crate) fn new(
        session: Arc<Session>,
        attempt: Arc<Attempt>,
        token: u64,
        validity: Validity,
    ) -> Self {
        Self { session, attempt, token: token.into(), validity }
    }

    /// Sends a request about the lease's own entry.
    async fn ask<T>(
        &self,
        op: &'static str,
        ask: impl Fn(&MemoryStore, &LockName, Uuid) -> T,
    ) -> Result<T> {
        let Progress { name, id, ttl, .. } = &**self.attempt;
        self.session.request(op, *ttl, |store| ask(store, name, *id)).await
    }

    fn gone(&self) -> Error {
        self.validity.lose(LossReason::EntryGone);
        Error::Lost { name: self.attempt.name.clone(), reason: LossReason::EntryGone }
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
        self.ask("renew", MemoryStore::renew).await?.then_some(()).ok_or_else(|| self.gone())?;
        self.validity.extend(safe_until(sent, self.attempt.ttl));
        Ok(())
    }

    async fn downgrade(&self) -> Result<()> {
        self.ask("downgrade", MemoryStore::downgrade)
            .await?
            .then_some(())
            .ok_or_else(|| self.gone())
    }

    async fn try_upgrade(&self) -> Result<bool> {
        match self.ask("upgrade", MemoryStore::try_upgrade).await? {
            Upgrade::Busy => Ok(false),
            Upgrade::Gone => Err(self.gone()),
            Upgrade::Done(token) => {
                self.token.store(token.value(), Ordering::Release);
                Ok(true)
            }
        }
    }

    async fn publish(&self, value: &[u8]) -> Result<()> {
        let led = self.ask("publish", |store, name, id| store.publish(name, id, value)).await?;
        led.then_some(()).ok_or_else(|| self.gone())
    }

    async fn detach(&self) -> Result<String> {
        self.session.forget(&self.attempt);
        let to = Uuid::new_v4();
        let held = self.ask("detach", |store, name, id| store.detach(name, id, to)).await?;
        held.then(|| to.simple().to_string()).ok_or_else(|| self.gone())
    }

    /// The entry expires in the store.
    fn ends_by_itself(&self) -> bool {
        true
    }

    async fn release(&self) -> Result<()> {
        let store = &self.session.client.store;
        if store.has(Defect::KeepsTheUncollected)
            && self.validity.loss() == Some(LossReason::NotCollected)
        {
            return self.session.keep(&self.attempt);
        }
        self.session.forget(&self.attempt);
        // If the store is out of reach for a TTL, the entry has expired there.
        self.ask("release", MemoryStore::release).await
    }
}
