//! A lock that the database granted.

use std::sync::{
    Arc,
    atomic::{AtomicU64, Ordering},
};

use async_trait::async_trait;
use lock_core::{
    Clock, Error, FencingToken, Instant, Kind, Lease, LossReason, Result, Validity,
    deadline::safe_until, keep::wait::ended,
};

use crate::{
    acquire::detach,
    layout::row::Row,
    session::{Session, attempt::Attempt},
    wire::{script::Script, turns::Rank},
};

/// A lock that is held: its attempt's row is admitted by the queue rule.
#[derive(Debug)]
pub struct SqlLease {
    session: Arc<Session>,
    attempt: Arc<Attempt>,
    token: AtomicU64,
    /// Number of published values.
    version: AtomicU64,
    validity: Validity,
}

impl SqlLease {
    /// The lease of a granted attempt. If the attempt was closed or revoked meanwhile, its entry is
    /// removed.
    ///
    /// # Errors
    ///
    /// Same as [`ended`].
    pub(crate) fn hold(
        session: &Arc<Session>,
        attempt: &Arc<Attempt>,
        sent: Instant,
        token: u64,
    ) -> Result<Box<dyn Lease>> {
        let validity = attempt.hold(sent, ()).map_err(|end| {
            session.remove_later(vec![attempt.clone()]);
            ended(&**session, attempt.ttl, end)
        })?;
        let (session, attempt) = (session.clone(), attempt.clone());
        Ok(Box::new(Self { session, attempt, token: token.into(), version: 0.into(), validity }))
    }

    /// Sends a script that changes the row, and returns the row.
    ///
    /// # Errors
    ///
    /// [`Error::Lost`] if the row is gone. Otherwise same as [`Session::insist`].
    async fn change(&self, op: &'static str, script: impl Fn(Script) -> String) -> Result<Row> {
        let (deadline, patience) =
            (Clock::Boot.now() + self.attempt.ttl / 2, self.attempt.patience());
        let (_, rows) =
            self.session.insist((op, Rank::HandOver), script, patience, deadline, None).await?;
        let row =
            rows.entries.into_iter().find(|row| !row.left.is_zero()).ok_or_else(|| self.gone())?;
        self.session.changed(&self.attempt.name);
        Ok(row)
    }

    fn gone(&self) -> Error {
        self.validity.lose(LossReason::EntryGone);
        Error::Lost { name: self.attempt.name.clone(), reason: LossReason::EntryGone }
    }
}

impl Drop for SqlLease {
    /// A lost lock is not released, but must not stay in the session's book.
    fn drop(&mut self) {
        self.session.forget(&self.attempt);
    }
}

#[async_trait]
impl Lease for SqlLease {
    fn token(&self) -> FencingToken {
        FencingToken::new(self.token.load(Ordering::Acquire))
    }

    fn validity(&self) -> &Validity {
        &self.validity
    }

    async fn downgrade(&self) -> Result<()> {
        let (token, client) = (self.token().value(), self.session.id);
        let (name, id) = (&self.attempt.name, self.attempt.id);
        let downgrade = |script: Script| script.downgrade(name, id, token, client);
        self.change("downgrade", downgrade).await.map(drop)
    }

    async fn try_upgrade(&self) -> Result<bool> {
        let (name, id, token) = (&self.attempt.name, self.attempt.id, self.token().value());
        let row = self.change("upgrade", |script| script.upgrade(name, id, token)).await?;
        let done = row.kind == Kind::Exclusive;
        if done {
            self.token.store(row.token, Ordering::Release);
        }
        Ok(done)
    }

    async fn publish(&self, value: &[u8]) -> Result<()> {
        // A reply may be lost, and the caller may not wait for it. By their versions, the newer
        // value stays in any order of arrival, and each is kept once.
        let version = self.version.fetch_add(1, Ordering::AcqRel) + 1;
        let (name, id) = (&self.attempt.name, self.attempt.id);
        let publish = |script: Script| script.publish(name, id, version, value);
        self.change("publish", publish).await.map(drop)
    }

    async fn detach(&self) -> Result<String> {
        let detached = detach::detach(&self.session, &self.attempt, self.token().value()).await;
        detached.map(|to| to.simple().to_string())
    }

    async fn renew(&self) -> Result<()> {
        if let Some(sent) = self.session.renew_now(&self.attempt).await? {
            self.validity.extend(safe_until(sent, self.attempt.ttl));
            return Ok(());
        }
        Err(self.gone())
    }

    /// The entry has a time limit of its own in the store.
    fn ends_by_itself(&self) -> bool {
        true
    }

    async fn release(&self) -> Result<()> {
        // By then the attempt has expired, even if renewals are still on their way.
        let deadline = self.validity.until().max(Clock::Boot.now()) + self.attempt.ttl;
        self.session.remove(std::slice::from_ref(&self.attempt), false, deadline).await
    }
}
