//! A lock without an expiry: the first client that creates the key, the node or the row holds it
//! until a client deletes it. Its unlock does not check the owner.

#[cfg(feature = "etcd")]
mod etcd;
mod key;
#[cfg(any(feature = "mysql", feature = "postgres"))]
mod sql;
#[cfg(feature = "zookeeper")]
mod zookeeper;

use std::{sync::Arc, time::Duration};

use async_trait::async_trait;
use tokio::time::sleep;

#[cfg(feature = "redis")]
use crate::keys::RedisKeys;
use crate::{
    Contestant, Failure, Hold, KeySpace, Nature, Player, Stage, Store, keys::SimulatedKeys,
    time::Time,
};

/// Waiters poll, because they get no notification.
const PAUSE: Duration = Duration::from_millis(10);

/// The thing that a lock consists of. Both functions fail if the store does not answer.
#[async_trait]
pub(crate) trait Things: Send + Sync {
    /// Creates it. Returns whether it did not exist yet.
    async fn create(&self, name: &str) -> Result<bool, Failure>;

    /// Deletes it, regardless of its creator. Returns whether it existed.
    async fn remove(&self, name: &str) -> Result<bool, Failure>;
}

/// The lock on one store. On the embedded stores it is a simulation.
#[derive(Clone)]
pub(crate) struct Endless {
    store: Store,
    #[cfg_attr(
        not(any(
            feature = "etcd",
            feature = "mysql",
            feature = "postgres",
            feature = "redis",
            feature = "zookeeper"
        )),
        expect(dead_code, reason = "a simulation has no URL")
    )]
    url: String,
    simulated: SimulatedKeys,
}

impl Endless {
    /// The lock on the stage's shared store.
    pub(crate) async fn on(stage: &Stage) -> Result<Self, Failure> {
        let url = stage.shared().await?.url();
        Ok(Self { store: stage.store, url, simulated: SimulatedKeys::default() })
    }

    /// The same lock through another URL of the same store, such as a proxy's.
    pub(crate) fn via(&self, url: String) -> Self {
        Self { url, ..self.clone() }
    }

    /// Connects to the store.
    pub(crate) async fn connect(&self) -> Result<Arc<dyn Things>, Failure> {
        Ok(match self.store {
            #[cfg(feature = "redis")]
            Store::Redis => Arc::new(key::Key(RedisKeys::new(&self.url)?.connect().await?)),
            #[cfg(feature = "etcd")]
            Store::Etcd => Arc::new(etcd::Key::connect(&self.url).await?),
            #[cfg(feature = "zookeeper")]
            Store::ZooKeeper => Arc::new(zookeeper::Node::connect(&self.url).await?),
            #[cfg(feature = "mysql")]
            Store::MySql => Arc::new(sql::MySqlRow::connect(&self.url).await?),
            #[cfg(feature = "postgres")]
            Store::Postgres => Arc::new(sql::PostgresRow::connect(&self.url).await?),
            _ => Arc::new(key::Key(self.simulated.connect().await?)),
        })
    }
}

#[async_trait]
impl Contestant for Endless {
    fn label(&self) -> String {
        let lock = match self.store {
            Store::Redis => "SETNX without EXPIRE, bare DEL",
            Store::Etcd => "a key without a lease",
            Store::ZooKeeper => "a persistent node",
            Store::MySql | Store::Postgres => "a row with a unique key and no expiry",
            Store::Sqlite | Store::Memory => "a key without an expiry",
        };
        lock.to_owned()
    }

    fn nature(&self) -> Nature {
        match self.store {
            Store::Redis | Store::MySql => Nature::AsPrinted,
            Store::Sqlite | Store::Memory => Nature::Simulation,
            _ => Nature::Imitation,
        }
    }

    fn boxed(&self) -> Box<dyn Contestant> {
        Box::new(self.clone())
    }

    async fn client(&self) -> Result<Arc<dyn Player>, Failure> {
        Ok(Arc::new(Client(self.connect().await?)))
    }
}

struct Client(Arc<dyn Things>);

#[async_trait]
impl Player for Client {
    async fn acquire(
        &self,
        name: &str,
        _ttl: Duration,
        wait: Duration,
    ) -> Result<Option<Box<dyn Hold>>, Failure> {
        let time = Time::start();
        while !self.0.create(name).await? {
            if time.since() >= wait {
                return Ok(None);
            }
            sleep(PAUSE).await;
        }
        Ok(Some(Box::new(Held { things: self.0.clone(), name: name.to_owned() })))
    }
}

struct Held {
    things: Arc<dyn Things>,
    name: String,
}

#[async_trait]
impl Hold for Held {
    fn token(&self) -> Option<u64> {
        None
    }

    fn believes(&self) -> bool {
        true
    }

    async fn release(self: Box<Self>) -> Result<bool, Failure> {
        self.things.remove(&self.name).await
    }
}
