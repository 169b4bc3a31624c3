//! A lock that the database granted.

use std::{sync::Arc, time::Duration};

use async_trait::async_trait;
use lock_core::{
    Clock, Error, FencingToken, Instant, Kind, Lease, Result, Validity,
    keep::{attempt::End, grant::Grants, lease::LeaseState, wait::Waits},
};

use crate::{
    acquire::detach,
    layout::{
        dialect::{Dialect, stamp},
        row::Row,
    },
    session::{Session, attempt::Attempt},
    wire::{database::Reply, script::Script, turns::Rank},
};

/// A lock that is held: its attempt's row is admitted by the queue rule.
#[derive(Debug)]
pub struct SqlLease {
    session: Arc<Session>,
    attempt: Arc<Attempt>,
    state: LeaseState,
}

impl SqlLease {
    /// The last statement of a transaction that commits only while the lock is held, for a client
    /// other than `sqlx`, which has [`CommitHeld::commit`](crate::CommitHeld::commit). It needs no
    /// parameters: the values of this grant are in it. Send it in a transaction of the locks' own
    /// database and schema, and at once: commit if it returns a row, and roll back if it returns
    /// none or an error. A client that prepares statements has no use for this one twice.
    ///
    /// ```no_run
    /// # mod distlock { pub use lock_core::*; pub use lock_sql as sql; }
    /// use distlock::{LockGuard, sql::SqlLease};
    ///
    /// fn last_statement(guard: &LockGuard) -> Option<String> {
    ///     Some(guard.lease_as::<SqlLease>()?.check_sql())
    /// }
    /// ```
    pub fn check_sql(&self) -> String {
        let (name, token) = (&self.attempt.name, self.token().value());
        let script = self.session.script().held(name, token, self.attempt.id);
        stamp(&script, Clock::Boot.now())
    }

    pub(crate) fn dialect(&self) -> Dialect {
        self.session.dialect()
    }

    /// Sends a script that changes the row, and returns the row.
    async fn change(&self, op: &'static str, script: impl Fn(Script) -> String) -> Result<Row> {
        let call = self.attempt.call(op, Rank::HandOver);
        let Reply { rows, .. } = self.session.insist(call, script).await?;
        let row = rows.entries.into_iter().find(|row| !row.left.is_zero());
        let row = row.ok_or_else(|| self.state.gone())?;
        self.session.changed(&self.attempt.name);
        Ok(row)
    }
}

impl Grants for Session {
    fn enter(&self, attempt: &Arc<Attempt>) -> Result<()> {
        let earlier = self.book().attempts.enter(attempt, Clock::Boot.now());
        if earlier.ok_or_else(|| Error::closed(self.dialect().store()))? {
            self.renewal_bell.notify_one();
        }
        Ok(())
    }

    fn forget(&self, attempt: &Attempt) {
        self.book().forget(attempt);
    }

    fn hold(
        self: &Arc<Self>,
        attempt: &Arc<Attempt>,
        sent: Instant,
        token: u64,
    ) -> Result<Box<dyn Lease>, End> {
        let state = LeaseState::new(attempt, token, attempt.hold(sent, ())?);
        self.listen();
        Ok(Box::new(SqlLease { session: self.clone(), attempt: attempt.clone(), state }))
    }

    fn clean_up_all(self: &Arc<Self>, attempts: &[Arc<Attempt>]) {
        self.remove_later(attempts.to_vec());
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
        self.state.token()
    }

    fn validity(&self) -> &Validity {
        self.state.validity()
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
            self.state.upgraded(row.token);
        }
        Ok(done)
    }

    async fn publish(&self, value: &[u8]) -> Result<()> {
        let (name, id, version) = (&self.attempt.name, self.attempt.id, self.state.next_version());
        let publish = |script: Script| script.publish(name, id, version, value);
        self.change("publish", publish).await.map(drop)
    }

    async fn detach(&self) -> Result<String> {
        let detached = detach::detach(&self.session, &self.attempt, self.token().value()).await;
        detached.map(|to| to.simple().to_string())
    }

    async fn mark(&self, host: &str, left: Duration) -> Result<()> {
        let (name, id, token) = (&self.attempt.name, self.attempt.id, self.token().value());
        let ends = Clock::Boot.now() + left;
        let mark =
            |script: Script| script.mark(name, id, token, host, ends.since(Clock::Boot.now()));
        self.change("mark as done", mark).await.map(drop)
    }

    async fn renew(&self) -> Result<()> {
        self.state.renewed(self.session.renew(&self.attempt).await?)
    }

    /// The entry has a time limit of its own in the store.
    fn ends_by_itself(&self) -> bool {
        true
    }

    async fn release(&self) -> Result<()> {
        self.session.withdraw(&self.attempt, self.state.expired_by(Clock::Boot.now())).await
    }
}
