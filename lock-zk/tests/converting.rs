//! Downgrades and upgrades over networks that break.

use std::time::Duration;

use lock_core::{Kind, LockGuard, Result};
use lock_lab::{Proxy, ZooKeeper};
use lock_zk::client::Client;
use tokio::task::JoinHandle;

use crate::support::*;

/// Loses the answer to the creation of an upgrade's node.
async fn unanswered_upgrade(
    server: &ZooKeeper,
    proxy: &Proxy,
    raw: &Client,
) -> JoinHandle<Result<LockGuard>> {
    let locks = open(&server.url_via(proxy)).await;
    let delay = Duration::from_millis(100);
    loop {
        let mut guard = locks.shared("up").unwrap().acquire().await.unwrap();
        proxy.delay(delay);
        let upgrade = tokio::spawn(async move {
            assert!(guard.try_upgrade().await?);
            Ok(guard)
        });
        let nodes = async |count| {
            eventually("the server has so many nodes", || async {
                children(raw, "/locks/up").await.len() == count
            })
            .await;
        };
        nodes(2).await;
        proxy.half_open();
        proxy.delay(Duration::ZERO);
        // A client that got the answer asks next to delete the old node.
        if tokio::time::timeout(delay * 3, nodes(1)).await.is_err() {
            return upgrade;
        }
        // This machine stood still for so long that the answer got through.
        proxy.heal();
        let guard = soon("the upgrade", upgrade).await.unwrap().unwrap();
        guard.release().await.unwrap();
    }
}

#[tokio::test]
async fn an_unanswered_upgrade_is_found_again() {
    let server = server().await;
    let (proxy, raw) = (proxy(&server).await, raw(&server).await);
    let upgrade = unanswered_upgrade(&server, &proxy, &raw).await;
    proxy.reset();
    proxy.heal();
    let guard = soon("the upgrade", upgrade).await.unwrap().unwrap();
    assert!(guard.is_valid() && guard.kind() == Kind::Exclusive);
    assert_eq!(children(&raw, "/locks/up").await.len(), 1);
    guard.release().await.unwrap();
    assert!(children(&raw, "/locks/up").await.is_empty());
}

/// The guard is dropped while it is not known yet which node holds the lock.
#[tokio::test]
async fn an_unanswered_upgrade_of_a_caller_that_left_leaves_nothing() {
    let server = server().await;
    let (proxy, raw) = (proxy(&server).await, raw(&server).await);
    let upgrade = unanswered_upgrade(&server, &proxy, &raw).await;
    upgrade.abort();
    soon("the caller leaves", upgrade).await.unwrap_err();
    proxy.reset();
    proxy.heal();
    eventually("nothing remains", || async { children(&raw, "/locks/up").await.is_empty() }).await;
    assert_eq!(server.counters().await.unwrap().get("sessions_expired"), 0);
}

/// Another attempt comes while an upgrade's node is on its way: one of them is first, and both
/// succeed.
#[tokio::test]
async fn an_attempt_during_an_upgrade_waits_for_it() {
    let server = server().await;
    let (proxy, raw) = (proxy(&server).await, raw(&server).await);
    let upgrade = unanswered_upgrade(&server, &proxy, &raw).await;
    let other = open(&server.url()).await;
    let reader = queue_up(&other, other.shared("up").unwrap(), "up", 2).await;
    proxy.reset();
    proxy.heal();
    let guard = soon("the upgrade", upgrade).await.unwrap().unwrap();
    assert!(!reader.is_finished());
    let token = guard.token();
    guard.release().await.unwrap();
    let reader = soon("the reader", reader).await.unwrap().unwrap();
    assert!(reader.token() > token);
    reader.release().await.unwrap();
}
