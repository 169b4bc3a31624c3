//! The lease of a granted lock.

use std::{sync::Arc, time::Duration};

use async_trait::async_trait;
use lock_core::{
    Clock, Error, FencingToken, Lease, Result, Validity,
    keep::{errors::unsupported, grant::Grants, lease::LeaseState, marks, wait::Waits},
};

use crate::{
    acquire::detach,
    error::STORE,
    layout::kind::{EXCLUSIVE, SHARED},
    session::{Session, attempt::Attempt, retry::Effort},
    wire::{answer, script},
};

/// A lock that is held: the key carries this attempt's ticket, or the value of its group.
#[derive(Debug)]
pub struct RedisLease {
    session: Arc<Session>,
    attempt: Arc<Attempt>,
    state: LeaseState,
}

impl RedisLease {
    pub(crate) fn new(session: Arc<Session>, attempt: Arc<Attempt>, state: LeaseState) -> Self {
        Self { session, attempt, state }
    }

    /// The lock's key. Use it for a guarded write: while the lock is held alone, the key has this
    /// lease's [`value`](Self::value). A script that compares them makes Redis itself refuse a
    /// holder that has lost the lock. It also refuses a lock that is held shared or by permits.
    ///
    /// ```no_run
    /// # mod distlock { pub use lock_core::*; pub use lock_redis as redis; }
    /// # async fn example(guard: lock_core::LockGuard, redis: lock_redis::client::Client) {
    /// use distlock::redis::{RedisLease, client::Script};
    ///
    /// let (Some(lease), Ok(mut connection)) =
    ///     (guard.lease_as::<RedisLease>(), redis.get_multiplexed_async_connection().await)
    /// else {
    ///     return;
    /// };
    /// let write = Script::new(
    ///     "if redis.call('GET', KEYS[1]) ~= ARGV[1] then return 0 end
    ///      redis.call('SET', KEYS[2], ARGV[2])
    ///      return 1",
    /// );
    /// let mut call = write.key(lease.key());
    /// call.key("stock").arg(lease.value()).arg(41);
    /// if call.invoke_async::<u8>(&mut connection).await.ok() != Some(1) {
    ///     println!("not written: the lock is lost, or Redis did not answer");
    /// }
    /// # }
    /// ```
    pub fn key(&self) -> &[u8] {
        self.attempt.key.lock()
    }

    /// The value of the [`key`](Self::key) while the lock is held alone.
    pub fn value(&self) -> &[u8] {
        self.attempt.ticket.text()
    }

    /// The server does not have the lock any more: it is lost, with this error.
    fn gone(&self) -> Error {
        let reason = self.attempt.loss();
        self.state.validity().lose(reason);
        self.attempt.lost(reason)
    }

    async fn convert(&self, op: &'static str, word: &str) -> Result<i64> {
        let request = script::convert(self.attempt.member(), self.token(), word);
        self.session.change(&self.attempt, op, &request).await
    }
}

impl Drop for RedisLease {
    /// A lost lock is not released, and must not stay in the session's book.
    fn drop(&mut self) {
        self.session.forget(&self.attempt);
    }
}

#[async_trait]
impl Lease for RedisLease {
    fn token(&self) -> FencingToken {
        self.state.token()
    }

    fn validity(&self) -> &Validity {
        self.state.validity()
    }

    async fn downgrade(&self) -> Result<()> {
        self.attempt.share(true);
        let done = self.convert("downgrade", SHARED).await? == 1;
        done.then_some(()).ok_or_else(|| self.gone())
    }

    async fn try_upgrade(&self) -> Result<bool> {
        self.attempt.set_token(None);
        match self.convert("upgrade", EXCLUSIVE).await? {
            0 => {
                self.attempt.set_token(Some(self.token().value()));
                Ok(false)
            }
            -1 => Err(self.gone()),
            token => {
                self.state.upgraded(token.unsigned_abs());
                self.attempt.set_token(Some(token.unsigned_abs()));
                self.attempt.share(false);
                Ok(true)
            }
        }
    }

    async fn publish(&self, value: &[u8]) -> Result<()> {
        if !self.attempt.leads {
            let what = "publish a value by a lock that was acquired without one";
            return Err(unsupported(STORE, what));
        }
        let (version, database) = (self.state.next_version(), self.session.config.database);
        let request = script::publish(self.attempt.member(), version, database, value);
        let done = self.session.change(&self.attempt, "publish", &request).await? == 1;
        done.then_some(()).ok_or_else(|| self.gone())
    }

    async fn detach(&self) -> Result<String> {
        detach::detach(&self.session, &self.attempt, self.token()).await
    }

    async fn mark(&self, host: &str, left: Duration) -> Result<()> {
        let mark = marks::text(&marks::done_now(host, self.token(), left));
        let request = script::mark(self.attempt.member(), &mark, left);
        // Sent once: lock-core sends it again, with the time that is left then.
        let (limit, deadline) = (self.attempt.patience(), Clock::Boot.now());
        let effort = Effort::urgent("mark as done", limit, deadline);
        let (_, done) = self.session.insist(&request, effort, answer::int).await.answer?;
        (done == 1).then_some(()).ok_or_else(|| self.gone())
    }

    async fn renew(&self) -> Result<()> {
        match self.session.renew(&self.attempt).await? {
            // The attempt knows how much of it counts.
            Some(_) if !self.attempt.is_lost() => Ok(()),
            // A server that took over may have it in its queue, or have granted it anew.
            _ => {
                self.session.clean_up(&self.attempt);
                Err(self.gone())
            }
        }
    }

    /// The lock's key expires in the store.
    fn ends_by_itself(&self) -> bool {
        true
    }

    async fn release(&self) -> Result<()> {
        let expiry = self.state.expired_by(Clock::Boot.now());
        self.session.withdraw(&self.attempt, expiry).await
    }
}
