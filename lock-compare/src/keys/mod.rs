//! Keys with an expiry, from which the articles build locks: Redis's own keys, rows of a database,
//! keys of etcd with a lease, ephemeral znodes, or a simulation.

mod counted;
#[cfg(feature = "etcd")]
mod etcd;
#[cfg(feature = "redis")]
mod redis;
mod simulated;
#[cfg(any(feature = "mysql", feature = "postgres", feature = "sqlite"))]
mod sql;
#[cfg(feature = "zookeeper")]
mod zookeeper;

use std::{sync::Arc, time::Duration};

use async_trait::async_trait;

#[cfg(feature = "etcd")]
pub use self::etcd::EtcdKeys;
#[cfg(feature = "redis")]
pub use self::redis::RedisKeys;
#[cfg(any(feature = "mysql", feature = "postgres", feature = "sqlite"))]
pub use self::sql::SqlKeys;
#[cfg(feature = "zookeeper")]
pub use self::zookeeper::ZooKeeperKeys;
pub use self::{
    counted::{Counted, Sent},
    simulated::SimulatedKeys,
};
use crate::{Failure, Ground, Nature, Stage, Store};

/// A place of keys that clients connect to.
#[async_trait]
pub trait KeySpace: Send + Sync {
    /// The kind of implementation that plays them.
    fn nature(&self) -> Nature;

    /// Connects a client with its own connection.
    async fn connect(&self) -> Result<Arc<dyn Keys>, Failure>;
}

/// The commands. Each fails if the store does not answer.
#[async_trait]
pub trait Keys: Send + Sync {
    /// `SETNX key value`.
    async fn set_nx(&self, key: &str, value: &str) -> Result<bool, Failure>;

    /// `SET key value NX PX ttl`.
    async fn set_nx_px(&self, key: &str, value: &str, ttl: Duration) -> Result<bool, Failure>;

    /// `SET key value`.
    async fn set(&self, key: &str, value: &str) -> Result<(), Failure>;

    /// `PEXPIRE key ttl`.
    async fn expire(&self, key: &str, ttl: Duration) -> Result<bool, Failure>;

    /// `PTTL key`: `None` if the key does not exist, `Some(None)` if it has no expiry.
    async fn ttl(&self, key: &str) -> Result<Option<Option<Duration>>, Failure>;

    /// `GET key`.
    async fn get(&self, key: &str) -> Result<Option<String>, Failure>;

    /// `DEL key`.
    async fn del(&self, key: &str) -> Result<bool, Failure>;

    /// `DECR key`. Returns the new number.
    async fn decr(&self, key: &str) -> Result<i64, Failure>;

    /// The script that deletes the key if it has this value.
    async fn compare_and_del(&self, key: &str, value: &str) -> Result<bool, Failure>;

    /// The script that prolongs the key if it has this value.
    async fn compare_and_expire(
        &self,
        key: &str,
        value: &str,
        ttl: Duration,
    ) -> Result<bool, Failure>;

    /// The script that decrements the number unless it is 0. Returns the new number, or `None` if
    /// nothing was left.
    async fn compare_and_decr(&self, key: &str) -> Result<Option<i64>, Failure>;

    /// Waits until the key does not exist any more, if the store notifies clients of that. Returns
    /// whether it does. The default returns `false` at once.
    async fn gone(&self, key: &str) -> Result<bool, Failure> {
        let _ = key;
        Ok(false)
    }

    /// Returns the keys with this prefix, in order. By default the store does not list them.
    async fn names(&self, prefix: &str) -> Result<Vec<String>, Failure> {
        Err(format!("this store does not list keys, so not those of {prefix:?}").into())
    }
}

/// Returns the keys of the stage's shared store. `None` if it has no keys that the articles
/// describe.
pub async fn keys(stage: &Stage) -> Result<Option<Arc<dyn KeySpace>>, Failure> {
    Ok(match stage.store {
        Store::Memory | Store::Sqlite => Some(Arc::new(SimulatedKeys::default())),
        #[cfg(feature = "redis")]
        Store::Redis => Some(Arc::new(RedisKeys::new(&stage.shared().await?.url())?)),
        _ => None,
    })
}

/// Returns the keys of the Redis server at this URL.
pub(crate) fn keys_at(url: &str) -> Result<Arc<dyn KeySpace>, Failure> {
    #[cfg(feature = "redis")]
    {
        Ok(Arc::new(RedisKeys::new(url)?))
    }
    #[cfg(not(feature = "redis"))]
    {
        let _ = url;
        Err(crate::Missing::new("redis is not compiled in", "build with the feature redis").into())
    }
}

/// Returns the keys of any store, through its bare client. Only in memory they are a simulation. A
/// store other than Redis has them as its own clients would make them: rows, keys with a lease,
/// ephemeral znodes.
pub async fn of(store: Store, ground: &Ground) -> Result<Arc<dyn KeySpace>, Failure> {
    let url = ground.url();
    Ok(match store {
        #[cfg(feature = "redis")]
        Store::Redis => Arc::new(RedisKeys::new(&url)?),
        #[cfg(feature = "etcd")]
        Store::Etcd => Arc::new(EtcdKeys::new(&url)?),
        #[cfg(feature = "zookeeper")]
        Store::ZooKeeper => Arc::new(ZooKeeperKeys::new(&url)?),
        #[cfg(feature = "sqlite")]
        Store::Sqlite => Arc::new(SqlKeys::new(store, &format!("{url}.keys")).await?),
        #[cfg(feature = "postgres")]
        Store::Postgres => Arc::new(SqlKeys::new(store, &url).await?),
        #[cfg(feature = "mysql")]
        Store::MySql => Arc::new(SqlKeys::new(store, &url).await?),
        _ => {
            let _ = url;
            Arc::new(SimulatedKeys::default())
        }
    })
}
