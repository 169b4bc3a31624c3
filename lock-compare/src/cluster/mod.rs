//! Stores of several nodes, and clients that connect to them.

#[cfg(feature = "etcd")]
mod etcd_lock;
#[cfg(feature = "etcd")]
mod etcd_probe;
#[cfg(any(feature = "etcd", feature = "zookeeper"))]
mod limited;
mod on_side;
mod probe;
mod replicated_redis;
#[cfg(feature = "redis")]
mod sentinel_keys;
mod service;
#[cfg(feature = "zookeeper")]
mod zookeeper_lock;
#[cfg(feature = "zookeeper")]
mod zookeeper_probe;

use std::sync::Arc;

use lock_lab::RedisSentinels;

#[cfg(feature = "etcd")]
pub(crate) use self::etcd_lock::EtcdLock;
#[cfg(feature = "zookeeper")]
pub(crate) use self::zookeeper_lock::ZooKeeperLock;
pub(crate) use self::{
    on_side::OnSide, probe::Probe, replicated_redis::ReplicatedRedis, service::Service,
};
use crate::{Failure, KeySpace};

/// Returns the keys of the Redis that these sentinels name.
pub(crate) fn sentinel_keys(redis: &RedisSentinels) -> Result<Arc<dyn KeySpace>, Failure> {
    #[cfg(feature = "redis")]
    {
        let (sentinels, service) = (redis.sentinel_addrs(), redis.service());
        Ok(Arc::new(sentinel_keys::SentinelKeys::new(sentinels, service)))
    }
    #[cfg(not(feature = "redis"))]
    {
        let _ = redis;
        Err(crate::Missing::client_of(crate::Store::Redis).into())
    }
}
