//! A client of a private server or of several, for the executable properties of any driver.

use async_trait::async_trait;
use lock_core::{
    Locks,
    properties::{Client, Failure},
};
use lock_lab::Proxy;

/// A client whose way to each server leads through a proxy of its own.
pub struct Remote {
    // First: the locks are dropped before their network.
    pub locks: Locks,
    pub proxies: Vec<Proxy>,
}

impl Remote {
    fn all(&self, what: impl Fn(&Proxy)) -> Result<(), Failure> {
        self.proxies.iter().for_each(what);
        Ok(())
    }
}

#[async_trait]
impl Client for Remote {
    fn locks(&self) -> &Locks {
        &self.locks
    }

    async fn cut(&self) -> Result<(), Failure> {
        self.all(Proxy::cut)
    }

    async fn cut_replies(&self) -> Result<(), Failure> {
        self.all(Proxy::half_open)
    }

    async fn heal(&self) -> Result<(), Failure> {
        self.all(Proxy::heal)
    }

    async fn lose_replies(&self) -> Result<(), Failure> {
        self.all(Proxy::reset)?;
        self.heal().await
    }

    async fn crash(&self) -> Result<(), Failure> {
        self.all(Proxy::refuse)
    }
}
