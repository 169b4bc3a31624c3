//! A lock that is held.

use std::{
    fmt,
    sync::{Arc, Mutex},
    time::Duration,
};

use async_trait::async_trait;
use lock_core::{
    Clock, Error, Facts, FencingToken, Lease, LossReason, Result, Validity,
    keep::poison::lock,
    validity::{margin, safe_until},
};
use zookeeper_client::Error as ZkError;

use crate::{
    error,
    layout::note::Became,
    session::{
        Session,
        attempt::{Attempt, Leftover},
    },
};

/// A lock that is held in ZooKeeper: an ephemeral node that its queue has admitted.
pub struct ZkLease {
    pub(crate) session: Arc<Session>,
    /// An upgrade replaces it.
    attempt: Mutex<Arc<Attempt>>,
    validity: Validity,
    /// The value that was published last, if any. Its guard also lets one change of the grant
    /// happen at a time, since each change is for the current attempt.
    published: tokio::sync::Mutex<Option<Arc<[u8]>>>,
}

impl ZkLease {
    pub(crate) fn new(session: Arc<Session>, attempt: Arc<Attempt>, validity: Validity) -> Self {
        let published = tokio::sync::Mutex::new(attempt.request.value.clone());
        Self { session, attempt: Mutex::new(attempt), validity, published }
    }

    /// The path of the lock's node, below the chroot. It exists as long as the lock is held, and no
    /// other attempt ever has it. So it is the condition for a guarded write of your own: ZooKeeper
    /// itself refuses a holder that has lost the lock. An upgrade moves the lock to a new node.
    ///
    /// ```no_run
    /// # mod distlock { pub use lock_core::*; pub use lock_zk as zookeeper; }
    /// # async fn example(guard: lock_core::LockGuard, zookeeper: lock_zk::client::Client) {
    /// use distlock::zookeeper::ZkLease;
    ///
    /// let Some(lease) = guard.lease_as::<ZkLease>() else { return };
    /// let Ok(mut held) = zookeeper.new_check_writer(&lease.path(), None) else { return };
    /// let (_, written) = (held.add_set_data("/stock", b"41", None), held.commit().await);
    /// if written.is_err() {
    ///     println!("not written: the lock is lost, or ZooKeeper did not answer");
    /// }
    /// # }
    /// ```
    pub fn path(&self) -> String {
        path(&self.attempt()).to_owned()
    }

    fn attempt(&self) -> Arc<Attempt> {
        lock(&self.attempt).clone()
    }

    /// A holder that overran its term was told at the safe deadline, but may still be working. It
    /// has until the term's real end to stop, the same as with a store that expires terms by
    /// itself.
    async fn let_the_holder_stop(&self) {
        if let Some(LossReason::TermOver | LossReason::Expired) = self.validity.loss() {
            let end = self.validity.until() + margin(self.session.ttl());
            Box::pin(Clock::Boot.sleep_until(end)).await;
        }
    }

    /// The error of a call after the loss. `reason` counts if the holder was not told of another.
    fn lost(&self, reason: LossReason) -> Error {
        let reason = self.validity.loss().unwrap_or(reason);
        Error::Lost { name: self.attempt().request.name.clone(), reason }
    }

    /// Writes a note into the grant's node.
    async fn write(&self, attempt: &Attempt, note: &[u8]) -> Result<()> {
        self.found(attempt, self.session.write(attempt, note).await)
    }

    /// The result of a request that also said whether it found the grant's node.
    fn found(&self, attempt: &Attempt, found: Result<bool>) -> Result<()> {
        match found {
            Ok(true) => Ok(()),
            Ok(false) => {
                attempt.gone();
                Err(self.lost(LossReason::EntryGone))
            }
            Err(_) if self.session.is_over() => Err(self.lost(LossReason::SessionEnded)),
            Err(error) => Err(error),
        }
    }
}

/// Returns the path of a grant's node. A grant always has one.
pub(crate) fn path(attempt: &Attempt) -> &str {
    attempt.node().map_or("", |node| &node.path)
}

#[async_trait]
impl Lease for ZkLease {
    fn token(&self) -> FencingToken {
        // A grant always has a node.
        self.attempt().node().map_or(FencingToken::new(0), |node| node.token)
    }

    fn facts(&self) -> Facts {
        Facts::new([("czxid", self.token().value())])
    }

    fn validity(&self) -> &Validity {
        &self.validity
    }

    /// A node's session never changes, and all locks of a client share one. To keep one lock alive
    /// for another process would keep all of them, and to hand over the session would give all of
    /// them away.
    async fn detach(&self) -> Result<String> {
        let what = "leave a lock to another process: its node lives by the session that made it, which \
                    all locks of this client share";
        Err(Error::Unsupported { store: error::STORE, what: what.to_owned() })
    }

    async fn downgrade(&self) -> Result<()> {
        let published = self.published.lock().await;
        let attempt = self.attempt();
        if attempt.is_shared() {
            return Ok(());
        }
        self.write(&attempt, &attempt.note(Some(Became::Shared), published.as_deref())).await?;
        attempt.downgrade();
        Ok(())
    }

    async fn try_upgrade(&self) -> Result<bool> {
        let mut published = self.published.lock().await;
        let old = self.attempt();
        if !old.is_shared() {
            return Ok(true);
        }
        let acquire = self.upgrade(&old);
        let upgraded = acquire.replace(&old, &self.validity).await;
        if self.session.is_over() {
            return Err(self.lost(LossReason::SessionEnded));
        }
        match (upgraded, self.validity.loss()) {
            (Ok(true), _) => {
                *published = acquire.attempt.request.value.clone();
                *lock(&self.attempt) = acquire.attempt;
                Ok(true)
            }
            (_, Some(reason)) => Err(self.lost(reason)),
            (other, None) => other,
        }
    }

    async fn publish(&self, value: &[u8]) -> Result<()> {
        let mut published = self.published.lock().await;
        let attempt = self.attempt();
        let became = attempt.is_shared().then_some(Became::Shared);
        let written = self.write(&attempt, &attempt.note(became, Some(value))).await;
        // Without an answer an observer may have seen it: no later write takes it back.
        if matches!(written, Ok(()) | Err(Error::Unavailable { .. })) {
            *published = Some(value.into());
        }
        written
    }

    async fn mark(&self, host: &str, left: Duration) -> Result<()> {
        let ends = Clock::Boot.now() + left;
        let _alone = self.published.lock().await;
        let (attempt, token) = (self.attempt(), self.token());
        let name = &attempt.request.name;
        let marked = self.session.mark(path(&attempt), name, token, host, ends).await;
        self.found(&attempt, marked)
    }

    async fn renew(&self) -> Result<()> {
        loop {
            let attempt = self.attempt();
            let ended = || self.lost(LossReason::SessionEnded);
            let exchange = self.session.begin().map_err(|_| ended())?;
            let asked = exchange.ask_leader(path(&attempt));
            let asked = self.session.over.run_until_cancelled(asked).await;
            match asked.ok_or_else(ended)? {
                Ok(()) => {
                    attempt.set_term_end(safe_until(exchange.sent, self.session.ttl()));
                    let held = attempt.renew(Clock::Boot.now(), self.session.deadline.safe_until());
                    return if held { Ok(()) } else { Err(self.lost(LossReason::Expired)) };
                }
                Err(ZkError::NoNode) => {
                    let _alone = self.published.lock().await;
                    // Unless an upgrade has moved the grant to another node meanwhile.
                    if Arc::ptr_eq(&attempt, &self.attempt()) {
                        attempt.gone();
                        return Err(self.lost(LossReason::EntryGone));
                    }
                }
                Err(error) => {
                    self.session.hear(&error);
                    return Err(error::read_failed("renew", error));
                }
            }
        }
    }

    async fn release(&self) -> Result<()> {
        if self.session.is_over() {
            // Its nodes go with it.
            return Ok(());
        }
        self.let_the_holder_stop().await;
        let _alone = self.published.lock().await;
        let attempt = self.attempt();
        // A waiter right behind in this process need not wait for the server.
        attempt.pass();
        let removed = match self.validity.loss() {
            // All locks of the session were lost at the same moment: their nodes go together.
            Some(LossReason::Expired) => Err(None),
            _ => self.session.remove(path(&attempt)).await.map_err(Some),
        };
        self.session.forget(attempt.id);
        match removed {
            Err(error) if !self.session.is_over() => {
                self.session.left.add(Leftover::Node(path(&attempt).to_owned()));
                error.map_or(Ok(()), Err)
            }
            _ => Ok(()),
        }
    }
}

impl Drop for ZkLease {
    fn drop(&mut self) {
        // A release has done it already; a grant that was lost to an operator is never released.
        self.session.forget(self.attempt().id);
    }
}

impl fmt::Debug for ZkLease {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("ZkLease")
            .field("path", &self.path())
            .field("validity", &self.validity)
            .field("session", &self.session)
            .finish()
    }
}
