//! The lease of a granted lock.

use std::{sync::Arc, time::Duration};

use async_trait::async_trait;
use lock_core::{
    Clock, FencingToken, Lease, LockName, LossReason, Result, Validity,
    keep::{attempt::Progress, lease::LeaseState},
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
    pub(crate) session: Arc<Session>,
    pub(crate) attempt: Arc<Attempt>,
    pub(crate) state: LeaseState,
}

impl MemoryLease {
    /// Sends a request about the lease's own entry.
    async fn ask<T>(
        &self,
        op: &'static str,
        ask: impl Fn(&MemoryStore, &LockName, Uuid) -> T,
    ) -> Result<T> {
        let Progress { name, id, ttl, .. } = &**self.attempt;
        self.session.request(op, *ttl, |store| ask(store, name, *id)).await
    }
}

#[async_trait]
impl Lease for MemoryLease {
    fn token(&self) -> FencingToken {
        self.state.token()
    }

    fn validity(&self) -> &Validity {
        self.state.validity()
    }

    async fn renew(&self) -> Result<()> {
        let sent = Clock::Tokio.now();
        let found = self.ask("renew", MemoryStore::renew).await?;
        self.state.renewed(found.then_some(sent))
    }

    async fn downgrade(&self) -> Result<()> {
        let held = self.ask("downgrade", MemoryStore::downgrade).await?;
        held.then_some(()).ok_or_else(|| self.state.gone())
    }

    async fn try_upgrade(&self) -> Result<bool> {
        match self.ask("upgrade", MemoryStore::try_upgrade).await? {
            Upgrade::Busy => Ok(false),
            Upgrade::Gone => Err(self.state.gone()),
            Upgrade::Done(token) => {
                self.state.upgraded(token.value());
                Ok(true)
            }
        }
    }

    async fn publish(&self, value: &[u8]) -> Result<()> {
        let led = self.ask("publish", |store, name, id| store.publish(name, id, value)).await?;
        led.then_some(()).ok_or_else(|| self.state.gone())
    }

    async fn detach(&self) -> Result<String> {
        self.session.forget(&self.attempt);
        let to = Uuid::new_v4();
        let held = self.ask("detach", |store, name, id| store.detach(name, id, to)).await?;
        held.then(|| to.simple().to_string()).ok_or_else(|| self.state.gone())
    }

    async fn mark(&self, host: &str, left: Duration) -> Result<()> {
        let mark = |store: &MemoryStore, name: &LockName, id| store.set_mark(name, id, host, left);
        let held = self.ask("mark as done", mark).await?;
        held.then_some(()).ok_or_else(|| self.state.gone())
    }

    /// The entry expires in the store.
    fn ends_by_itself(&self) -> bool {
        true
    }

    async fn release(&self) -> Result<()> {
        let store = &self.session.client.store;
        if store.has(Defect::KeepsTheUncollected)
            && self.state.validity().loss() == Some(LossReason::NotCollected)
        {
            return self.ask("release", MemoryStore::keep).await;
        }
        self.session.forget(&self.attempt);
        // If the store is out of reach for a TTL, the entry has expired there.
        self.ask("release", MemoryStore::release).await
    }
}
