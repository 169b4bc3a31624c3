//! The simple mode: polling, no queue.

use std::time::Duration;

use lock_core::{DistributedLock, Fairness, LossReason, Wake};

use crate::lab::*;

const TTL: Duration = Duration::from_secs(10);

#[tokio::test]
async fn waiters_poll_and_get_it() {
    let server = server().await;
    let driver = driver(&format!("{}?mode=simple", server.url())).await;
    assert_eq!(driver.guarantees().fairness, Fairness::None);
    assert_eq!(driver.guarantees().wake, Wake::Poll);
    let lease = acquire(&driver, "orders", TTL).await.unwrap();
    assert!(is_contended(&try_acquire(&driver, "orders", TTL).await));
    let waiter = Waiter::start(&driver, "orders", TTL);
    let token = lease.token();
    lease.release().await.unwrap();
    let lease = waiter.granted().await;
    assert!(lease.token() > token);
    lease.release().await.unwrap();
    nothing_is_left(&server).await;
}

#[tokio::test]
async fn it_is_two_commands_as_well() {
    let server = server().await;
    let driver = driver(&format!("{}?mode=simple", server.url())).await;
    let before = server.counters().await.unwrap();
    for _ in 0..50 {
        // So long that no renewal falls into the count.
        acquire(&driver, "orders", TTL * 60).await.unwrap().release().await.unwrap();
    }
    let calls = server.counters().await.unwrap().since(&before);
    assert_eq!(calls.get("cmd.evalsha"), 100, "{calls}");
}

#[tokio::test]
async fn both_modes_exclude_each_other() {
    let server = server().await;
    let simple = driver(&format!("{}?mode=simple", server.url())).await;
    let queue = driver(&server.url()).await;
    let lease = acquire(&simple, "orders", TTL).await.unwrap();
    assert!(is_contended(&try_acquire(&queue, "orders", TTL).await));
    let waiter = Waiter::queued(&queue, &server, "orders", TTL).await;
    lease.release().await.unwrap();
    let lease = waiter.granted().await;
    assert!(is_contended(&try_acquire(&simple, "orders", TTL).await));
    let waiter = Waiter::start(&simple, "orders", TTL);
    lease.release().await.unwrap();
    waiter.granted().await.release().await.unwrap();
    nothing_is_left(&server).await;
}

#[tokio::test]
async fn locks_are_renewed_and_their_loss_is_noticed() {
    let server = server().await;
    let driver = driver(&format!("{}?mode=simple", server.url())).await;
    let ttl = Duration::from_secs(9);
    let lease = acquire(&driver, "orders", ttl).await.unwrap();
    let first = lease.validity().until();
    until(async || lease.validity().until() > first + ttl).await;
    server.command(&[b"DEL", b"orders"]).await.unwrap();
    assert_eq!(within(lease.validity().lost()).await, LossReason::EntryGone);
}

#[tokio::test]
async fn closing_frees_everything() {
    let server = server().await;
    let driver = driver(&format!("{}?mode=simple", server.url())).await;
    let lease = acquire(&driver, "orders", TTL).await.unwrap();
    let waiter = Waiter::start(&driver, "orders", TTL);
    driver.close().await.unwrap();
    assert!(waiter.ended().await.is_err());
    assert_eq!(within(lease.validity().lost()).await, LossReason::Closed);
    nothing_is_left(&server).await;
}
