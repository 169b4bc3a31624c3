//! Locks that a scenario can be played with: distlock, and those that the articles print.

use std::{sync::Arc, time::Duration};

use async_trait::async_trait;
use distlock::{Error, Held, LockGuard, Locks};

use crate::{Actor, Failure, Nature};

/// A lock, as something that clients can be made of.
#[async_trait]
pub trait Contestant: Send + Sync {
    /// What it is called: "SETNX, then EXPIRE".
    fn label(&self) -> String;

    /// Who plays it.
    fn nature(&self) -> Nature;

    /// The same again.
    fn boxed(&self) -> Box<dyn Contestant>;

    /// A new client with connections of its own.
    ///
    /// # Errors
    ///
    /// If the store cannot be reached.
    async fn client(&self) -> Result<Arc<dyn Player>, Failure>;
}

impl dyn Contestant + '_ {
    /// A new client that lives in the runtime of an actor, with its connections and its renewals.
    ///
    /// # Errors
    ///
    /// As [`client`](Contestant::client).
    pub async fn client_in(&self, home: &Actor) -> Result<Arc<dyn Player>, Failure> {
        let contestant = self.boxed();
        home.run(async move { contestant.client().await }).await?
    }
}

/// One client of a lock.
#[async_trait]
pub trait Player: Send + Sync {
    /// Acquires the exclusive lock of a name. `None` if it is still held by another one after
    /// `wait`, which is a bare try if it is zero.
    ///
    /// # Errors
    ///
    /// Any other end than those two.
    async fn acquire(
        &self,
        name: &str,
        ttl: Duration,
        wait: Duration,
    ) -> Result<Option<Box<dyn Hold>>, Failure>;

    /// Ends the client's session, with all that it holds. The locks of the articles have none.
    ///
    /// # Errors
    ///
    /// If the store does not confirm.
    async fn close(&self) -> Result<(), Failure> {
        Ok(())
    }
}

/// A lock that a client holds, or believes to hold.
#[async_trait]
pub trait Hold: Send + Sync {
    /// The fencing token, if the lock has one.
    fn token(&self) -> Option<u64>;

    /// Whether the client believes that it holds the lock. The locks of the articles never doubt.
    fn believes(&self) -> bool;

    /// Releases the lock as its protocol does. Whether the store said that it was ours: a bare
    /// `DEL` says "yes" also when it deletes the lock of somebody else.
    ///
    /// # Errors
    ///
    /// If the store cannot be reached.
    async fn release(self: Box<Self>) -> Result<bool, Failure>;
}

/// distlock on the store of a URL.
#[derive(Clone, Debug)]
pub struct Distlock {
    url: String,
    fixed: bool,
}

impl Distlock {
    /// distlock on the store of this URL.
    pub fn new(url: impl Into<String>) -> Self {
        Self { url: url.into(), fixed: false }
    }

    /// Without renewals: a lock ends one TTL after its grant.
    #[must_use]
    pub fn fixed_term(mut self) -> Self {
        self.fixed = true;
        self
    }

    /// A client that is there already.
    pub(crate) fn client_of(locks: Locks) -> Arc<dyn Player> {
        Arc::new(Connected { locks, fixed: false })
    }
}

#[async_trait]
impl Contestant for Distlock {
    fn label(&self) -> String {
        if self.fixed { "distlock with a fixed term" } else { "distlock" }.into()
    }

    fn nature(&self) -> Nature {
        Nature::Distlock
    }

    fn boxed(&self) -> Box<dyn Contestant> {
        Box::new(self.clone())
    }

    async fn client(&self) -> Result<Arc<dyn Player>, Failure> {
        let locks = distlock::connect(&self.url).await?;
        Ok(Arc::new(Connected { locks, fixed: self.fixed }))
    }
}

struct Connected {
    locks: Locks,
    fixed: bool,
}

#[async_trait]
impl Player for Connected {
    async fn acquire(
        &self,
        name: &str,
        ttl: Duration,
        wait: Duration,
    ) -> Result<Option<Box<dyn Hold>>, Failure> {
        let lock = self.locks.lock(name)?.ttl(ttl);
        let lock = if self.fixed { lock.fixed_term() } else { lock };
        let guard = match wait.is_zero() {
            true => lock.try_acquire().await?,
            false => match lock.wait(wait).acquire().await {
                Ok(guard) => Some(guard),
                Err(Error::WaitTimeout { .. }) => None,
                Err(error) => return Err(error.into()),
            },
        };
        Ok(guard.map(|guard| Box::new(guard) as Box<dyn Hold>))
    }

    async fn close(&self) -> Result<(), Failure> {
        Ok(self.locks.close().await?)
    }
}

#[async_trait]
impl Hold for LockGuard {
    fn token(&self) -> Option<u64> {
        Some(Held::token(self).value())
    }

    fn believes(&self) -> bool {
        self.is_valid()
    }

    async fn release(self: Box<Self>) -> Result<bool, Failure> {
        match LockGuard::release(*self).await {
            Ok(()) => Ok(true),
            Err(Error::Lost { .. }) => Ok(false),
            Err(error) => Err(error.into()),
        }
    }
}
