//! A lock that is held.

use std::{
    fmt,
    sync::{
        Arc,
        atomic::{AtomicBool, Ordering},
    },
    time::Duration,
};

use async_trait::async_trait;
use lock_core::{
    Clock, Error, FencingToken, Lease, LockName, LossReason, Request, Result, Term, Validity,
    deadline::safe_until,
};
use tokio::{sync::Mutex, time::timeout};

use crate::{
    claim::Claim,
    connection::ANSWER_LIMIT,
    error::{Failure, Kind},
    requests,
};

/// A lock that etcd granted. It lives by an etcd lease that all locks of the client with the same
/// TTL share.
pub struct EtcdLease {
    claim: Claim,
    name: LockName,
    ttl: Duration,
    fixed: bool,
    token: FencingToken,
    validity: Validity,
    slot: usize,
    over: Arc<AtomicBool>,
    removed: Mutex<bool>,
}

impl EtcdLease {
    pub(crate) fn new(
        claim: Claim,
        request: &Request,
        token: FencingToken,
        validity: Validity,
        slot: usize,
        over: Arc<AtomicBool>,
    ) -> Self {
        let (name, ttl, fixed) = (request.name.clone(), request.ttl, request.term == Term::Fixed);
        let removed = Mutex::new(false);
        Self { claim, name, ttl, fixed, token, validity, slot, over, removed }
    }

    /// The key of the lock's entry: for a guarded write of your own, `CreateRevision(key) == token`
    /// in the transaction that writes makes etcd itself refuse a holder that has lost the lock.
    pub fn key(&self) -> &str {
        &self.claim.key
    }

    /// Ends the bookkeeping of this grant; false if that was done before.
    fn finish(&self, hand_over: bool) -> bool {
        if self.over.swap(true, Ordering::AcqRel) {
            return false;
        }
        let Claim { session, store, queue, key, .. } = &self.claim;
        session.unhold(self.slot);
        let mut names = store.watcher.names();
        match hand_over {
            true => names.release(queue, self.revision(), key),
            false => names.leave(queue, self.revision()),
        }
        true
    }

    fn revision(&self) -> i64 {
        i64::try_from(self.token.value()).unwrap_or(i64::MAX)
    }

    fn lost(&self, reason: LossReason) -> Error {
        Error::Lost { name: self.name.clone(), reason }
    }

    fn check(&self) -> Result<()> {
        match self.validity.loss() {
            Some(reason) => Err(self.lost(reason)),
            None if self.over.load(Ordering::Acquire) => Err(self.lost(LossReason::EntryGone)),
            None => Ok(()),
        }
    }
}

#[async_trait]
impl Lease for EtcdLease {
    fn token(&self) -> FencingToken {
        self.token
    }

    fn validity(&self) -> &Validity {
        &self.validity
    }

    async fn renew(&self) -> Result<()> {
        self.check()?;
        let session = &self.claim.session;
        let asked = Clock::Boot.now();
        session.hurry();
        self.claim.store.sessions.work.notify_one();
        let renewed = timeout(self.ttl.min(ANSWER_LIMIT * 2), session.renewed_since(asked));
        let exists =
            requests::exists(&self.claim.store.connection, &self.claim.key, self.revision());
        let (renewed, exists) = tokio::join!(renewed, exists);
        let renewed = renewed.map_err(|_| unanswered(self.ttl))?;
        let Some(sent) = renewed else { return self.check().and(Err(session_over(self))) };
        if !exists.map_err(|failure| failure.into_error("renew", false))? {
            self.validity.lose(LossReason::EntryGone);
        }
        if self.fixed {
            session.set_cap(self.slot, safe_until(sent, self.ttl));
        }
        self.check()
    }

    async fn release(&self) -> Result<()> {
        // What was lost is not handed over: whoever had it may still be at work.
        self.finish(self.validity.loss().is_none());
        // One at a time: a second call must not hit the key's next user.
        let mut removed = self.removed.lock().await;
        if !*removed {
            self.claim.remove().await?;
            *removed = true;
        }
        Ok(())
    }
}

fn unanswered(ttl: Duration) -> Error {
    Failure::new(Kind::Silent, format!("no keep-alive was confirmed within {ttl:?}"))
        .into_error("renew", false)
}

fn session_over(lease: &EtcdLease) -> Error {
    lease.lost(LossReason::SessionEnded)
}

impl fmt::Debug for EtcdLease {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("EtcdLease")
            .field("key", &self.claim.key)
            .field("token", &self.token)
            .field("validity", &self.validity)
            .finish_non_exhaustive()
    }
}

impl Drop for EtcdLease {
    /// lock-core releases what it drops; this is for whoever uses the driver alone.
    fn drop(&mut self) {
        if self.finish(false) {
            self.claim.clone().abandon();
        }
    }
}
