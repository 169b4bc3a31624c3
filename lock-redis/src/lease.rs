//! What Redis granted.

use std::sync::Arc;

use async_trait::async_trait;
use lock_core::{Error, FencingToken, Lease, LossReason, Result, Validity, deadline::safe_until};

use crate::{
    entry::Entry,
    session::{CLOCK, Session},
};

/// A lock that is held: the key carries this attempt's ticket.
#[derive(Debug)]
pub struct RedisLease {
    pub(crate) session: Arc<Session>,
    pub(crate) entry: Arc<Entry>,
    pub(crate) token: FencingToken,
    pub(crate) validity: Validity,
}

#[async_trait]
impl Lease for RedisLease {
    fn token(&self) -> FencingToken {
        self.token
    }

    fn validity(&self) -> &Validity {
        &self.validity
    }

    async fn renew(&self) -> Result<()> {
        if let Some(sent) = self.session.renew(&self.entry).await? {
            self.validity.extend(safe_until(sent, self.entry.ttl));
            return Ok(());
        }
        self.validity.lose(LossReason::EntryGone);
        Err(Error::Lost { name: self.entry.name.clone(), reason: LossReason::EntryGone })
    }

    async fn release(&self) -> Result<()> {
        // By then the key has expired, whatever renewals are still on their way.
        let deadline = self.validity.until().max(CLOCK.now()) + self.entry.ttl;
        self.session.withdraw(&self.entry, deadline).await
    }
}
