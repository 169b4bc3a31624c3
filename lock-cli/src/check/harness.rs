//! One check's part of the store: its harness.

use std::{sync::Arc, time::Duration};

use async_trait::async_trait;
use distlock::{LockName, Locks};
use lock_core::{
    DistributedLock,
    properties::{Client, Failure, Harness, NotHere},
};

use super::{
    namespace::Namespace,
    proxy::{Mode, Proxy},
    target::{Target, Way, via},
};

/// The store for one check. It shows only the check's own names.
pub(super) struct StoreHarness {
    target: Arc<Target>,
    prefix: String,
}

impl StoreHarness {
    pub(super) fn new(target: &Arc<Target>, number: usize) -> Self {
        let prefix = target.prefix(number);
        Self { target: target.clone(), prefix }
    }

    fn locks(&self, driver: Arc<dyn DistributedLock>) -> Locks {
        let (prefix, used) = (self.prefix.clone(), self.target.used.clone());
        Locks::new(Namespace { driver, prefix, used })
    }

    async fn connect(&self, url: &str) -> Result<Locks, Failure> {
        Ok(self.locks(distlock::connect(url).await?.driver().clone()))
    }
}

#[async_trait]
impl Harness for StoreHarness {
    async fn client(&self) -> Result<Box<dyn Client>, Failure> {
        let url = self.target.url();
        let (locks, network) = match &self.target.way {
            Way::Proxy { hosts, url } => {
                let proxy = Proxy::start(hosts).await?;
                (self.connect(&via(url, &proxy)).await?, Network::Proxy(proxy))
            }
            #[cfg(feature = "sqlite")]
            Way::File => {
                use distlock::sql::{SqlConfig, SqlLock};
                let config = SqlConfig::from_url(&lock_core::StoreUrl::parse(url)?)?;
                let driver = SqlLock::connect(config).await?;
                let faults = driver.faults();
                (self.locks(Arc::new(driver)), Network::File(faults))
            }
            Way::Bare(why) => (self.connect(url).await?, Network::None(why.clone())),
        };
        Ok(Box::new(Process { locks, network: Arc::new(network) }))
    }

    fn ttl(&self) -> Duration {
        self.target.ttl()
    }

    fn longest_name(&self) -> usize {
        LockName::MAX_BYTES - self.prefix.len()
    }

    async fn restart(&self) -> Result<(), Failure> {
        Err(own_server())
    }

    async fn delete(&self, _: &LockName) -> Result<(), Failure> {
        Err(own_server())
    }

    /// The entries that any operator would see.
    async fn leftovers(&self) -> Result<Vec<String>, Failure> {
        let left = self.target.left(&self.prefix).await?;
        Ok(left.iter().map(|(name, queue)| format!("{} at {name}", queue.len())).collect())
    }
}

fn own_server() -> Failure {
    NotHere("needs a server of its own".to_owned()).into()
}

/// A client that could be another process. A drop closes it, as the end of a process would.
struct Process {
    locks: Locks,
    network: Arc<Network>,
}

impl Drop for Process {
    fn drop(&mut self) {
        // No effect on a client that cannot be cut off, or is dead.
        let _ = self.network.set(Mode::Open);
        let (locks, network) = (self.locks.clone(), self.network.clone());
        tokio::spawn(async move {
            // A client that does not get through is cleaned up in the end.
            let _ = locks.close().await;
            drop(network);
        });
    }
}

enum Network {
    Proxy(Proxy),
    #[cfg(feature = "sqlite")]
    File(distlock::sql::Faults),
    None(String),
}

impl Network {
    fn set(&self, mode: Mode) -> Result<(), Failure> {
        match self {
            Self::Proxy(proxy) => proxy.set(mode),
            #[cfg(feature = "sqlite")]
            Self::File(faults) => match mode {
                Mode::Open => faults.heal(),
                Mode::Requests => faults.cut_replies(),
                Mode::Nothing => faults.cut(),
                Mode::Dead => faults.crash(),
            },
            Self::None(why) => return Err(NotHere(why.clone()).into()),
        }
        Ok(())
    }

    fn lose_replies(&self) -> Result<(), Failure> {
        match self {
            Self::Proxy(proxy) => proxy.end(),
            #[cfg(feature = "sqlite")]
            Self::File(faults) => faults.lose_replies(),
            Self::None(_) => {}
        }
        self.set(Mode::Open)
    }
}

#[async_trait]
impl Client for Process {
    fn locks(&self) -> &Locks {
        &self.locks
    }

    async fn cut(&self) -> Result<(), Failure> {
        self.network.set(Mode::Nothing)
    }

    async fn cut_replies(&self) -> Result<(), Failure> {
        self.network.set(Mode::Requests)
    }

    async fn heal(&self) -> Result<(), Failure> {
        self.network.set(Mode::Open)
    }

    async fn lose_replies(&self) -> Result<(), Failure> {
        self.network.lose_replies()
    }

    async fn crash(&self) -> Result<(), Failure> {
        self.network.set(Mode::Dead)
    }
}
