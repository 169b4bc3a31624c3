//! What the store granted.

use std::{sync::Arc, time::Duration};

use async_trait::async_trait;
use lock_core::{
    Clock, Error, FencingToken, Lease, LockName, LossReason, Request, Result, Term, Validity,
};
use uuid::Uuid;

use crate::{session::Session, store::Grant};

#[derive(Debug)]
pub(crate) struct MemoryLease {
    session: Arc<Session>,
    name: LockName,
    attempt: Uuid,
    ttl: Duration,
    token: FencingToken,
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
        Self { session, name, attempt, ttl, token: grant.token, validity }
    }
}

#[async_trait]
impl Lease for MemoryLease {
    fn token(&self) -> FencingToken {
        self.token
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
        self.validity.lose(LossReason::EntryGone);
        Err(Error::Lost { name: self.name.clone(), reason: LossReason::EntryGone })
    }

    async fn release(&self) -> Result<()> {
        self.session.forget(self.attempt);
        let release = |store: &crate::MemoryStore| store.release(&self.name, self.attempt);
        // Out of reach for a TTL, the entry has gone by itself.
        self.session.request("release", self.ttl, release).await
    }
}
