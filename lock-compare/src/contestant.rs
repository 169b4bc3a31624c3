//! Locks for the scenarios: distlock, and the locks printed in the articles.

use std::{sync::Arc, time::Duration};

use async_trait::async_trait;
use distlock::{Error, Held, LockGuard, Locks};

use crate::{Actor, Failure, Nature};

/// A lock from which clients can be made.
#[async_trait]
pub trait Contestant: Send + Sync {
    /// Its name, for example "SETNX, then EXPIRE".
    fn label(&self) -> String;

    /// The kind of implementation that plays it.
    fn nature(&self) -> Nature;

    /// Returns a copy.
    fn boxed(&self) -> Box<dyn Contestant>;

    /// Connects a new client with its own connections.
    async fn client(&self) -> Result<Arc<dyn Player>, Failure>;
}

impl dyn Contestant + '_ {
    /// Connects a new client inside an actor's runtime, with its connections and renewals.
    pub async fn client_in(&self, home: &Actor) -> Result<Arc<dyn Player>, Failure> {
        let contestant = self.boxed();
        home.run(async move { contestant.client().await }).await?
    }
}

/// One client of a lock.
#[async_trait]
pub trait Player: Send + Sync {
    /// Acquires the exclusive lock of a name. `None` if another client still holds it after `wait`.
    /// With a `wait` of zero it is a bare try.
    ///
    /// Any other result is an error.
    async fn acquire(
        &self,
        name: &str,
        ttl: Duration,
        wait: Duration,
    ) -> Result<Option<Box<dyn Hold>>, Failure>;

    /// Ends the client's session, with all its locks. The articles' locks have no session.
    async fn close(&self) -> Result<(), Failure> {
        Ok(())
    }
}

impl dyn Player {
    /// [`acquire`](Player::acquire) inside an actor's runtime.
    pub async fn acquire_in(
        self: &Arc<Self>,
        home: &Actor,
        name: &str,
        ttl: Duration,
        wait: Duration,
    ) -> Result<Option<Box<dyn Hold>>, Failure> {
        let (client, name) = (self.clone(), name.to_owned());
        home.run(async move { client.acquire(&name, ttl, wait).await }).await?
    }
}

/// A lock that a client holds, or believes it holds.
#[async_trait]
pub trait Hold: Send + Sync {
    /// The fencing token, if the lock has one.
    fn token(&self) -> Option<u64>;

    /// Whether the client believes that it holds the lock. The articles' locks always do.
    fn believes(&self) -> bool;

    /// Releases the lock as its protocol does. Returns whether the store confirmed the ownership. A
    /// bare `DEL` confirms it also when it deletes another client's lock.
    async fn release(self: Box<Self>) -> Result<bool, Failure>;
}

/// distlock on the store of a URL.
#[derive(Clone, Debug)]
pub struct Distlock {
    url: String,
    fixed: bool,
}

impl Distlock {
    /// Uses distlock on the store of this URL.
    pub fn new(url: impl Into<String>) -> Self {
        Self { url: url.into(), fixed: false }
    }

    /// Without renewals: a lock ends one TTL after its grant.
    #[must_use]
    pub fn fixed_term(mut self) -> Self {
        self.fixed = true;
        self
    }

    /// Uses an existing client.
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
        let locks = crate::connect::connect(&self.url).await?;
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
