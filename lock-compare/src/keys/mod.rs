//! Keys with an expiry, from which the articles build locks: Redis's own keys, rows of a database,
//! keys of etcd with a lease, ephemeral znodes, or a simulation.

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
pub(crate) use self::etcd::EtcdKeys;
#[cfg(feature = "redis")]
pub(crate) use self::redis::{RedisKeys, open as open_redis};
pub(crate) use self::simulated::SimulatedKeys;
#[cfg(any(feature = "mysql", feature = "postgres", feature = "sqlite"))]
pub(crate) use self::sql::SqlKeys;
#[cfg(feature = "zookeeper")]
pub(crate) use self::zookeeper::ZooKeeperKeys;
use crate::{Failure, Nature, Stage, Store};

/// A place of keys that clients connect to.
#[async_trait]
pub(crate) trait KeySpace: Send + Sync {
    fn nature(&self) -> Nature;

    async fn connect(&self) -> Result<Arc<dyn Keys>, Failure>;
}

/// The commands. Each fails if the store does not answer.
#[async_trait]
pub(crate) trait Keys: Send + Sync {
    /// `SETNX key value`, or `SET key value NX PX ttl`.
    async fn set_nx(&self, key: &str, value: &str, ttl: Option<Duration>) -> Result<bool, Failure>;

    async fn set(&self, key: &str, value: &str) -> Result<(), Failure>;

    /// `PEXPIRE key ttl`, or the script that does it if the key has this value.
    async fn expire(&self, key: &str, ttl: Duration, of: Option<&str>) -> Result<bool, Failure>;

    /// `PTTL key`: `None` if the key does not exist, `Some(None)` if it has no expiry.
    async fn ttl(&self, key: &str) -> Result<Option<Option<Duration>>, Failure>;

    async fn get(&self, key: &str) -> Result<Option<String>, Failure>;

    /// `DEL key`, or the script that does it if the key has this value.
    async fn del(&self, key: &str, of: Option<&str>) -> Result<bool, Failure>;

    /// `DECR key`, or the script that does it `unless_empty`: unless the number is 0. Returns the
    /// new number, or `None` if nothing was left.
    async fn decr(&self, key: &str, unless_empty: bool) -> Result<Option<i64>, Failure>;

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
pub(crate) async fn keys(stage: &Stage) -> Result<Option<Arc<dyn KeySpace>>, Failure> {
    Ok(match stage.store {
        Store::Memory | Store::Sqlite => Some(Arc::new(SimulatedKeys::default())),
        #[cfg(feature = "redis")]
        Store::Redis => Some(Arc::new(RedisKeys::new(&stage.shared().await?.url())?)),
        _ => None,
    })
}

pub(crate) fn keys_at(url: &str) -> Result<Arc<dyn KeySpace>, Failure> {
    #[cfg(feature = "redis")]
    {
        Ok(Arc::new(RedisKeys::new(url)?))
    }
    #[cfg(not(feature = "redis"))]
    {
        let _ = url;
        Err(crate::Missing::client_of(Store::Redis).into())
    }
}

/// Returns the keys of the store at this URL, through its bare client. Only in memory they are a
/// simulation. A store other than Redis has them as its own clients would make them: rows, keys with
/// a lease, ephemeral znodes.
pub(crate) async fn of(store: Store, url: &str) -> Result<Arc<dyn KeySpace>, Failure> {
    Ok(match store {
        #[cfg(feature = "redis")]
        Store::Redis => Arc::new(RedisKeys::new(url)?),
        #[cfg(feature = "etcd")]
        Store::Etcd => Arc::new(EtcdKeys::new(url)?),
        #[cfg(feature = "zookeeper")]
        Store::ZooKeeper => Arc::new(ZooKeeperKeys::new(url)?),
        #[cfg(feature = "sqlite")]
        Store::Sqlite => Arc::new(SqlKeys::new(store, &format!("{url}.keys")).await?),
        #[cfg(feature = "postgres")]
        Store::Postgres => Arc::new(SqlKeys::new(store, url).await?),
        #[cfg(feature = "mysql")]
        Store::MySql => Arc::new(SqlKeys::new(store, url).await?),
        _ => {
            let _ = url;
            Arc::new(SimulatedKeys::default())
        }
    })
}
