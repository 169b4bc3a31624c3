//! What the tests of both programs need: clients, and patience.

use std::{future::Future, sync::Arc, time::Duration};

use lock_core::{LockName, Request, Result, StoreUrl};
use lock_redis::{RedisConfig, RedisLock};

/// Longer than any step of a test takes on a busy machine.
pub const PATIENCE: Duration = Duration::from_secs(60);

pub async fn driver(url: &str) -> Arc<RedisLock> {
    Arc::new(try_driver(url).await.unwrap())
}

pub async fn try_driver(url: &str) -> Result<RedisLock> {
    RedisLock::connect(RedisConfig::from_url(&StoreUrl::parse(url)?)?).await
}

pub fn name(name: &str) -> LockName {
    LockName::new(name).unwrap()
}

pub fn request(lock: &str, ttl: Duration) -> Request {
    Request::new(name(lock), ttl)
}

pub async fn within<F: Future>(future: F) -> F::Output {
    tokio::time::timeout(PATIENCE, future).await.expect("it takes too long")
}
