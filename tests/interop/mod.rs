//! Real foreign clients on the same lock: they exclude us, and we exclude them.
//!
//! The Python clients run in the environment that `./test` creates. Without it, set
//! `DISTLOCK_TEST_PYTHON` to a Python with `kazoo` and `redis`.
#![cfg(any(feature = "etcd", feature = "redis", feature = "zookeeper"))]

#[cfg(feature = "etcd")]
mod elections;
mod foreign;

use self::foreign::Foreign;
use distlock::Locks;

use crate::support::{connect, eventually, start};

/// The foreign client holds the lock. We get it only after its release.
async fn it_excludes_us(locks: &Locks, name: &str, mut foreign: Foreign) {
    foreign.says("held").await;
    let lock = locks.lock(name).unwrap();
    assert!(lock.try_acquire().await.unwrap().is_none(), "took a lock that a foreign client holds");
    let queue = locks.inspect(name).await.unwrap();
    assert!(!queue.is_empty() && queue[0].attempt.is_none(), "{queue:?}");
    let waiter = tokio::spawn(lock.acquire());
    eventually("we wait", || async { locks.inspect(name).await.unwrap().len() == 2 }).await;
    assert!(!waiter.is_finished());
    foreign.release().await;
    let guard = tokio::time::timeout(std::time::Duration::from_secs(60), waiter).await;
    guard.expect("our turn").unwrap().unwrap().release().await.unwrap();
}

/// We hold the lock. The foreign client gets it only after our release.
async fn we_exclude_it(locks: &Locks, name: &str, start: impl AsyncFnOnce() -> Foreign) {
    let guard = locks.lock(name).unwrap().acquire().await.unwrap();
    let mut foreign = start().await;
    foreign.says("waiting").await;
    assert!(!foreign.said("held"), "a foreign client took a lock that we hold");
    assert!(guard.is_valid());
    guard.release().await.unwrap();
    foreign.says("held").await;
    assert!(locks.lock(name).unwrap().try_acquire().await.unwrap().is_none());
    foreign.release().await;
}

#[cfg(feature = "etcd")]
mod etcdctl {
    use super::*;

    #[tokio::test(flavor = "multi_thread")]
    async fn lock_excludes_us() {
        let server = start("etcd").await;
        let locks = connect(&server.url()).await;
        it_excludes_us(&locks, "orders", Foreign::etcdctl(server.addr(), "orders")).await;
    }

    #[tokio::test(flavor = "multi_thread")]
    async fn lock_waits_for_us() {
        let server = start("etcd").await;
        let locks = connect(&server.url()).await;
        we_exclude_it(&locks, "orders", async || {
            let foreign = Foreign::etcdctl(server.addr(), "orders");
            // Its key is behind ours in the queue.
            eventually("etcdctl in the queue", || async {
                locks.inspect("orders").await.unwrap().len() == 2
            })
            .await;
            foreign.say("waiting");
            foreign
        })
        .await;
    }

    #[tokio::test(flavor = "multi_thread")]
    async fn lock_takes_its_place_in_our_queue() {
        let server = start("etcd").await;
        let locks = connect(&server.url()).await;
        let guard = locks.lock("orders").unwrap().acquire().await.unwrap();
        let mut foreign = Foreign::etcdctl(server.addr(), "orders");
        let length = |n| {
            let locks = locks.clone();
            move || {
                let locks = locks.clone();
                async move { locks.inspect("orders").await.unwrap().len() == n }
            }
        };
        eventually("etcdctl waits", length(2)).await;
        let ours = tokio::spawn(locks.lock("orders").unwrap().acquire());
        eventually("we wait behind it", length(3)).await;
        guard.release().await.unwrap();
        foreign.says("held").await;
        assert!(!ours.is_finished(), "overtook etcdctl");
        foreign.release().await;
        ours.await.unwrap().unwrap().release().await.unwrap();
    }
}

#[cfg(feature = "redis")]
mod redis_py {
    use super::*;

    #[tokio::test(flavor = "multi_thread")]
    async fn lock_excludes_us() {
        let server = start("redis").await;
        let locks = connect(&server.url()).await;
        it_excludes_us(&locks, "orders", Foreign::redis_py(server.addr(), "orders")).await;
    }

    #[tokio::test(flavor = "multi_thread")]
    async fn lock_waits_for_us() {
        let server = start("redis").await;
        let locks = connect(&server.url()).await;
        we_exclude_it(&locks, "orders", async || Foreign::redis_py(server.addr(), "orders")).await;
    }

    #[tokio::test(flavor = "multi_thread")]
    async fn lock_and_the_simple_mode_exclude_each_other() {
        let server = start("redis").await;
        let locks = connect(&format!("{}?mode=simple", server.url())).await;
        we_exclude_it(&locks, "orders", async || Foreign::redis_py(server.addr(), "orders")).await;
    }
}

#[cfg(feature = "zookeeper")]
mod kazoo {
    use super::*;

    #[tokio::test(flavor = "multi_thread")]
    async fn lock_excludes_us() {
        let server = start("zookeeper").await;
        let locks = connect(&server.url()).await;
        it_excludes_us(&locks, "orders", Foreign::kazoo(server.addr(), "/locks/orders", "-lock-"))
            .await;
    }

    #[tokio::test(flavor = "multi_thread")]
    async fn lock_waits_for_us() {
        let server = start("zookeeper").await;
        let locks = connect(&server.url()).await;
        we_exclude_it(&locks, "orders", async || {
            Foreign::kazoo(server.addr(), "/locks/orders", "-lock-")
        })
        .await;
    }

    /// Documented, because it is surprising: without the pattern, kazoo counts only its own nodes.
    #[tokio::test(flavor = "multi_thread")]
    async fn lock_without_the_pattern_does_not_see_us() {
        let server = start("zookeeper").await;
        let locks = connect(&server.url()).await;
        let guard = locks.lock("orders").unwrap().acquire().await.unwrap();
        let mut foreign = Foreign::kazoo(server.addr(), "/locks/orders", "");
        foreign.says("held").await;
        assert!(guard.is_valid(), "both hold the lock now");
        foreign.release().await;
    }
}
