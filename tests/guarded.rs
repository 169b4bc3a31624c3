//! Guarded writes, as in the example: the store refuses the write of a holder that has lost the
//! lock, also after another client has taken it over.
#![cfg(any(feature = "etcd", feature = "redis", feature = "zookeeper"))]

#[cfg(feature = "etcd")]
#[path = "../examples/guarded/src/etcd.rs"]
mod on_etcd;
#[cfg(feature = "redis")]
#[path = "../examples/guarded/src/redis.rs"]
mod on_redis;
#[cfg(feature = "zookeeper")]
#[path = "../examples/guarded/src/zookeeper.rs"]
mod on_zookeeper;

use distlock::LockGuard;

use crate::support;

async fn write(url: &str, guard: &LockGuard) -> bool {
    let written = match guard.store() {
        #[cfg(feature = "etcd")]
        "etcd" => on_etcd::write(url, guard, "1").await,
        #[cfg(feature = "redis")]
        "redis" => on_redis::write(url, guard, "1").await,
        #[cfg(feature = "zookeeper")]
        "zookeeper" => on_zookeeper::write(url, guard, "1").await,
        other => panic!("no guarded write on {other}"),
    };
    written.unwrap_or_else(|error| panic!("{error}"))
}

on_every_server!(only_the_holder_writes, an_upgraded_holder_writes);

async fn only_the_holder_writes(store: &str) {
    let server = support::start(store).await;
    let (here, there) =
        (support::connect(&server.url()).await, support::connect(&server.url()).await);
    let guard = here.lock("stock").unwrap().acquire().await.unwrap();
    assert!(write(&server.url(), &guard).await);
    let attempt = there.inspect("stock").await.unwrap()[0].attempt.unwrap();
    assert!(there.revoke("stock", attempt).await.unwrap());
    assert!(!write(&server.url(), &guard).await, "revoked, and it wrote");
    let next = there.lock("stock").unwrap().acquire().await.unwrap();
    assert!(!write(&server.url(), &guard).await, "somebody else holds the lock, and it wrote");
    assert!(write(&server.url(), &next).await);
    next.release().await.unwrap();
}

async fn an_upgraded_holder_writes(store: &str) {
    let server = support::start(store).await;
    let locks = support::connect(&server.url()).await;
    let mut guard = locks.shared("stock").unwrap().acquire().await.unwrap();
    assert!(guard.try_upgrade().await.unwrap());
    assert!(write(&server.url(), &guard).await);
    guard.release().await.unwrap();
}
