//! Keys with an expiry, as the articles use them to build locks: Redis's own, or a simulation on
//! the embedded stores, which know no such commands.

#[cfg(feature = "redis")]
mod redis;
mod simulated;

use std::{sync::Arc, time::Duration};

use async_trait::async_trait;

#[cfg(feature = "redis")]
pub use self::redis::RedisKeys;
pub use self::simulated::SimulatedKeys;
use crate::{Failure, Nature, Stage, Store};

/// Where keys are, as something to connect to.
#[async_trait]
pub trait KeySpace: Send + Sync {
    /// Who plays them.
    fn nature(&self) -> Nature;

    /// A client with a connection of its own.
    ///
    /// # Errors
    ///
    /// If there is no answer.
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

    /// `PTTL key`: `None` if the key is not there, `Some(None)` if it has no end.
    async fn ttl(&self, key: &str) -> Result<Option<Option<Duration>>, Failure>;

    /// `GET key`.
    async fn get(&self, key: &str) -> Result<Option<String>, Failure>;

    /// `DEL key`.
    async fn del(&self, key: &str) -> Result<bool, Failure>;

    /// `DECR key`: the number after it.
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

    /// The script that decrements the number unless it is 0: the number after it, or `None` if
    /// nothing was left.
    async fn compare_and_decr(&self, key: &str) -> Result<Option<i64>, Failure>;
}

/// The keys of the stage's shared store: `None` if it has none that the articles speak of.
///
/// # Errors
///
/// If the store cannot be started.
pub async fn keys(stage: &Stage) -> Result<Option<Arc<dyn KeySpace>>, Failure> {
    Ok(match stage.store {
        Store::Memory | Store::Sqlite => Some(Arc::new(SimulatedKeys::default())),
        #[cfg(feature = "redis")]
        Store::Redis => Some(Arc::new(RedisKeys::new(&stage.shared().await?.url())?)),
        _ => None,
    })
}

/// The keys of the Redis with this URL.
///
/// # Errors
///
/// If it is no URL, or Redis is not compiled in.
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
