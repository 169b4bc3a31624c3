//! A lock that is held.

use std::{fmt, sync::Arc};

use async_trait::async_trait;
use lock_core::{
    Clock, Error, FencingToken, Lease, LockName, LossReason, Result, Validity,
    deadline::{margin, safe_until},
};

use crate::{entry::Entry, error, session::Session};

/// A lock that is held in ZooKeeper: an ephemeral node at the head of its queue.
pub struct ZkLease {
    name: LockName,
    session: Arc<Session>,
    entry: Arc<Entry>,
    validity: Validity,
}

impl ZkLease {
    pub(crate) fn new(
        name: LockName,
        session: Arc<Session>,
        entry: Arc<Entry>,
        validity: Validity,
    ) -> Self {
        Self { name, session, entry, validity }
    }

    /// The path of the lock's node, below the chroot.
    pub fn path(&self) -> &str {
        self.entry.node().map_or("", |node| &node.path)
    }

    /// A holder who overran its term was told at the safe deadline, but nobody knows whether it has
    /// stopped yet. It has until the term's real end, as it would have with a store that expires
    /// terms by itself.
    async fn let_the_holder_stop(&self) {
        if let Some(LossReason::TermOver | LossReason::Expired) = self.validity.loss() {
            let end = self.validity.until() + margin(self.session.ttl());
            tokio::time::sleep(end.since(Clock::Boot.now())).await;
        }
    }

    fn lost(&self, reason: LossReason) -> Error {
        Error::Lost { name: self.name.clone(), reason }
    }
}

#[async_trait]
impl Lease for ZkLease {
    fn token(&self) -> FencingToken {
        // A grant always has a node.
        self.entry.node().map_or(FencingToken::new(0), |node| node.token)
    }

    fn validity(&self) -> &Validity {
        &self.validity
    }

    async fn renew(&self) -> Result<()> {
        let ended = || self.lost(self.validity.loss().unwrap_or(LossReason::SessionEnded));
        let Ok(exchange) = self.session.begin() else { return Err(ended()) };
        let asked = tokio::select! {
            biased;
            asked = exchange.answer(exchange.client.check_stat(self.path())) => asked,
            () = self.session.over() => return Err(ended()),
        };
        match asked {
            Ok(Some(stat)) if stat.ephemeral_owner == self.session.id() => {
                self.validity.extend(safe_until(exchange.sent, self.session.ttl()));
                Ok(())
            }
            Ok(_) => {
                self.entry.gone();
                Err(self.lost(LossReason::EntryGone))
            }
            Err(error) => Err(error::read_failed("renew", error)),
        }
    }

    async fn release(&self) -> Result<()> {
        self.let_the_holder_stop().await;
        // Whoever waits right behind in this process need not wait for the server.
        self.entry.pass();
        let removed = self.session.remove(self.path()).await;
        self.session.forget(self.entry.attempt);
        removed
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
