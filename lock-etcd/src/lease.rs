//! A lock that is held.

use std::{
    fmt,
    sync::{
        Arc, Mutex,
        atomic::{AtomicBool, Ordering},
    },
    time::Duration,
};

use async_trait::async_trait;
use lock_core::{
    Clock, Error, Facts, FencingToken, Lease, LockName, LossReason, Request, Result, Term,
    Validity,
    duration::shown,
    keep::{marks, poison::lock},
    validity::safe_until,
};
use uuid::Uuid;

use crate::{
    acquire::convert::Upgraded,
    error::{Failure, FailureKind, STORE},
    session::{Session, attempt::Hold},
    wire::{
        member::ANSWER_LIMIT,
        requests::{self, Header},
    },
};

/// A lock that etcd granted. It lives by an etcd lease that all locks of the client with the same
/// TTL share.
pub struct EtcdLease {
    session: Arc<Session>,
    name: LockName,
    attempt: Uuid,
    holder: Arc<str>,
    ttl: Duration,
    fixed: bool,
    validity: Validity,
    shown: Mutex<Shown>,
    finished: AtomicBool,
    /// One change at a time: a second release must not hit the key's next user.
    hold: tokio::sync::Mutex<Hold>,
}

/// The parts of a lease that an upgrade changes.
#[derive(Clone, Debug)]
struct Shown {
    key: Arc<str>,
    /// The entry's create revision: the token, without the session's token floor.
    revision: i64,
    header: Header,
}

impl Shown {
    fn new(hold: &Hold) -> Self {
        let Hold { entry, revision, .. } = hold;
        Self { key: entry.key.clone(), revision: *revision, header: entry.header }
    }
}

impl EtcdLease {
    pub(crate) fn new(hold: Hold, request: &Request, attempt: Uuid, validity: Validity) -> Self {
        Self {
            session: hold.entry.session.clone(),
            name: request.name.clone(),
            attempt,
            holder: request.holder.clone(),
            ttl: request.ttl,
            fixed: request.term == Term::Fixed,
            validity,
            shown: Mutex::new(Shown::new(&hold)),
            finished: AtomicBool::new(false),
            hold: tokio::sync::Mutex::new(hold),
        }
    }

    /// A comparison for a guarded write of your own. In a transaction of etcd it is true as long as
    /// the lock is held, so etcd itself refuses a holder that has lost it. Same as `IsOwner()` of
    /// Go's `concurrency.Mutex`. An [upgrade](lock_core::LockGuard::try_upgrade) changes it.
    ///
    /// ```no_run
    /// # mod distlock { pub use lock_core::*; pub use lock_etcd as etcd; }
    /// # async fn example(guard: lock_core::LockGuard, mut etcd: lock_etcd::client::Client) {
    /// use distlock::etcd::{EtcdLease, client::{Txn, TxnOp}};
    ///
    /// let Some(lease) = guard.lease_as::<EtcdLease>() else { return };
    /// let write = Txn::new().when([lease.is_held()]).and_then([TxnOp::put("stock", "41", None)]);
    /// if !etcd.txn(write).await.is_ok_and(|answer| answer.succeeded()) {
    ///     println!("not written: the lock is lost, or etcd did not answer");
    /// }
    /// # }
    /// ```
    pub fn is_held(&self) -> etcd_client::Compare {
        let Shown { key, revision, .. } = lock(&self.shown).clone();
        etcd_client::Compare::create_revision(&*key, etcd_client::CompareOp::Equal, revision)
    }

    /// Returns the key of the lock's entry. An upgrade changes it.
    pub fn key(&self) -> Arc<str> {
        lock(&self.shown).key.clone()
    }

    /// Ends the bookkeeping of this grant. Returns false if that was done before.
    fn finish(&self) -> bool {
        let first = !self.finished.swap(true, Ordering::AcqRel);
        if first {
            self.session.unhold(self.attempt);
        }
        first
    }

    fn lost(&self, reason: LossReason) -> Error {
        Error::Lost { name: self.name.clone(), reason }
    }

    fn entry_gone(&self) -> Error {
        self.validity.lose(LossReason::EntryGone);
        self.lost(self.validity.loss().unwrap_or(LossReason::EntryGone))
    }

    fn check(&self) -> Result<()> {
        match self.validity.loss() {
            Some(reason) => Err(self.lost(reason)),
            None if self.finished.load(Ordering::Acquire) => Err(self.lost(LossReason::EntryGone)),
            None => Ok(()),
        }
    }

    /// Returns the test for whether to stop sending a conversion: the lock is over, or the store is
    /// out of reach.
    fn give_up(&self) -> impl Fn() -> bool + use<> {
        let patience = Clock::Boot.now() + self.ttl;
        let (validity, session) = (self.validity.clone(), self.session.clone());
        move || {
            validity.has_ended() || session.ended.is_cancelled() || Clock::Boot.now() >= patience
        }
    }
}

#[async_trait]
impl Lease for EtcdLease {
    fn token(&self) -> FencingToken {
        self.session.floor.token(lock(&self.shown).revision)
    }

    fn facts(&self) -> Facts {
        requests::facts(&lock(&self.shown).header)
    }

    fn validity(&self) -> &Validity {
        &self.validity
    }

    async fn downgrade(&self) -> Result<()> {
        let mut hold = self.hold.lock().await;
        self.check()?;
        let mut in_doubt = false;
        match hold.downgrade(&mut in_doubt, &self.give_up()).await {
            Ok(true) => self.check(),
            Ok(false) => Err(self.entry_gone()),
            Err(failure) => Err(failure.into_error("downgrade", in_doubt)),
        }
    }

    async fn try_upgrade(&self) -> Result<bool> {
        let mut hold = self.hold.lock().await;
        self.check()?;
        let (mut in_doubt, give_up) = (false, self.give_up());
        let upgrade = hold.try_upgrade(self.attempt, &self.holder, &mut in_doubt, &give_up);
        let upgraded = upgrade.await;
        hold.watch(&self.validity);
        match upgraded {
            Ok(Upgraded::Done(..)) => {
                *lock(&self.shown) = Shown::new(&hold);
                self.check().map(|()| true)
            }
            Ok(Upgraded::Busy(_)) => self.check().map(|()| false),
            Ok(Upgraded::Gone) => Err(self.entry_gone()),
            Err(failure) => Err(failure.into_error("upgrade", in_doubt)),
        }
    }

    /// Only for a lock that was acquired with a value: a plain lock's key has its note there.
    async fn publish(&self, value: &[u8]) -> Result<()> {
        let mut hold = self.hold.lock().await;
        self.check()?;
        if !hold.entry.is_candidate() {
            let what = "publish a value for a lock that was acquired without one".to_owned();
            return Err(Error::Unsupported { store: STORE, what });
        }
        let mut in_doubt = false;
        match hold.publish(value, &mut in_doubt, &self.give_up()).await {
            Ok(true) => self.check(),
            Ok(false) => Err(self.entry_gone()),
            Err(failure) => Err(failure.into_error("publish", in_doubt)),
        }
    }

    async fn detach(&self) -> Result<String> {
        let mut hold = self.hold.lock().await;
        if !hold.is_plain() {
            let what = "leave to another process what is no plain exclusive lock".to_owned();
            return Err(Error::Unsupported { store: STORE, what });
        }
        // From now on the waiters of this client wait for the deletion.
        if self.finish() {
            hold.unwatch();
        }
        let (session, patience) = (&self.session, Clock::Boot.now() + self.ttl / 2);
        let give_up = || session.ended.is_cancelled() || Clock::Boot.now() >= patience;
        let mut in_doubt = false;
        match hold.detach(&self.holder, self.ttl, &mut in_doubt, &give_up).await {
            Ok(Some(left)) => Ok(left.place()),
            Ok(None) => Err(self.lost(LossReason::EntryGone)),
            Err(failure) if failure.kind == FailureKind::LeaseGone => {
                Err(self.lost(LossReason::EntryGone))
            }
            Err(failure) => Err(failure.into_error("detach", in_doubt)),
        }
    }

    async fn mark(&self, host: &str, left: Duration) -> Result<()> {
        let mark = marks::done_now(host, self.token(), left);
        let hold = self.hold.lock().await;
        self.check()?;
        let mut in_doubt = false;
        match hold.mark(&mark, &mut in_doubt, &self.give_up()).await {
            Ok(true) => Ok(()),
            Ok(false) => Err(self.entry_gone()),
            Err(failure) => Err(failure.into_error("mark as done", in_doubt)),
        }
    }

    async fn renew(&self) -> Result<()> {
        self.check()?;
        let asked = Clock::Boot.now();
        self.session.hurry();
        let renewed =
            Clock::Boot.timeout(self.ttl.min(ANSWER_LIMIT * 2), self.session.renewed_since(asked));
        // It waits while the entry is being replaced.
        let stands = async { self.hold.lock().await.stands().await };
        let (renewed, stands) = tokio::join!(renewed, stands);
        let renewed = renewed.ok_or_else(|| {
            let silent = format!("no keep-alive was confirmed within {}", shown(self.ttl));
            Failure::new(FailureKind::Silent, silent).into_error("renew", false)
        });
        let Some(sent) = renewed? else {
            return self.check().and(Err(self.lost(LossReason::SessionEnded)));
        };
        if !stands.map_err(|failure| failure.into_error("renew", false))? {
            self.validity.lose(LossReason::EntryGone);
        }
        if self.fixed {
            self.session.set_cap(self.attempt, safe_until(sent, self.ttl));
        }
        self.check()
    }

    async fn release(&self) -> Result<()> {
        let mut hold = self.hold.lock().await;
        if self.finish() {
            // A lost lock is not handed over: its former holder may still be at work.
            match self.validity.loss() {
                None => hold.hand_over(),
                Some(_) => hold.unwatch(),
            }
        }
        hold.entry.remove().await
    }
}

impl fmt::Debug for EtcdLease {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("EtcdLease")
            .field("token", &self.token())
            .field("shown", &lock(&self.shown))
            .field("validity", &self.validity)
            .finish_non_exhaustive()
    }
}

impl Drop for EtcdLease {
    /// lock-core releases what it drops. This is for callers that use the driver alone.
    fn drop(&mut self) {
        if self.finish() {
            let hold = self.hold.get_mut();
            hold.unwatch();
            hold.entry.abandon();
        }
    }
}
