//! Locks for the scenarios: distlock, and the locks printed in the articles.

use std::{sync::Arc, time::Duration};

use async_trait::async_trait;
use distlock::{Error, Held, LockGuard, Locks};

use crate::{Actor, Failure, Nature, Side};

/// A lock from which clients can be made.
#[async_trait]
pub(crate) trait Contestant: Copied + Send + Sync {
    /// Its name, for example "SETNX, then EXPIRE".
    fn label(&self) -> String;

    fn nature(&self) -> Nature;

    async fn client(&self) -> Result<Arc<dyn Player>, Failure>;

    /// Connects a new client inside an actor's runtime, with its connections and renewals.
    async fn client_in(&self, home: &Actor) -> Result<Arc<dyn Player>, Failure> {
        let contestant = self.boxed();
        home.run(async move { contestant.client().await }).await?
    }
}

/// A lock that can be copied. All are that are `Clone`.
pub(crate) trait Copied {
    fn boxed(&self) -> Box<dyn Contestant>;
}

impl<T: Contestant + Clone + 'static> Copied for T {
    fn boxed(&self) -> Box<dyn Contestant> {
        Box::new(self.clone())
    }
}

impl dyn Contestant + '_ {
    /// Its behaviour, without a trace.
    pub(crate) fn side(&self, well: bool, happened: impl Into<String>) -> Side {
        Side::new(self.label(), self.nature(), well, happened)
    }
}

/// A lock, or `None` if another client still holds it after the wait.
pub(crate) type Granted = Result<Option<Box<dyn Hold>>, Failure>;

#[async_trait]
pub(crate) trait Player: Send + Sync {
    /// Acquires the exclusive lock of a name. With a `wait` of zero it is a bare try.
    async fn acquire(&self, name: &str, ttl: Duration, wait: Duration) -> Granted;

    /// Ends the client's session, with all its locks. The articles' locks have no session.
    async fn close(&self) -> Result<(), Failure> {
        Ok(())
    }
}

impl dyn Player {
    /// [`acquire`](Player::acquire) inside an actor's runtime.
    pub(crate) async fn acquire_in(
        self: &Arc<Self>,
        home: &Actor,
        name: &str,
        ttl: Duration,
        wait: Duration,
    ) -> Granted {
        let (client, name) = (self.clone(), name.to_owned());
        home.run(async move { client.acquire(&name, ttl, wait).await }).await?
    }
}

/// A lock that a client holds, or believes it holds.
#[async_trait]
pub(crate) trait Hold: Send + Sync {
    /// The fencing token, if the lock has one. The articles' locks have none.
    fn token(&self) -> Option<u64> {
        None
    }

    /// Whether the client believes that it holds the lock. The articles' locks always do.
    fn believes(&self) -> bool {
        true
    }

    /// Releases the lock as its protocol does. Returns whether the store confirmed the ownership. A
    /// bare `DEL` confirms it also when it deletes another client's lock.
    async fn release(self: Box<Self>) -> Result<bool, Failure>;
}

/// distlock on the store of a URL.
#[derive(Clone, Debug)]
pub(crate) struct Distlock {
    url: String,
    fixed: bool,
}

impl Distlock {
    pub(crate) fn new(url: impl Into<String>) -> Self {
        Self { url: url.into(), fixed: false }
    }

    /// Without renewals: a lock ends one TTL after its grant.
    pub(crate) fn fixed_term(mut self) -> Self {
        self.fixed = true;
        self
    }

    #[cfg(feature = "memory")]
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
    async fn acquire(&self, name: &str, ttl: Duration, wait: Duration) -> Granted {
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
