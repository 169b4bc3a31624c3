//! A server that is restored from an older backup while clients are connected.

use std::time::Duration;

use lock_core::{DistributedLock, Kind, LossReason};
use lock_lab::Redis;

use crate::lab::*;

/// So long that no renewal by its time comes while a test waits.
const LONG: Duration = Duration::from_secs(600);

/// What the backup does not know is lost at the reconnect, and told so. What was released since is
/// back until its TTL is over. Tokens go on.
#[tokio::test]
async fn holders_and_waiters_that_a_backup_does_not_know_are_told_at_once() {
    let server = Redis::start().await.unwrap();
    let (one, two) = (driver(&server.url()).await, driver(&server.url()).await);
    let kept = acquire(&one, "kept", LONG).await.unwrap();
    let moved = acquire(&one, "moved", LONG).await.unwrap();
    let backup = server.back_up().await.unwrap();
    until(async || moved.release().await.is_ok()).await;
    for number in 0..50 {
        let lock = format!("n{number}");
        acquire(&two, &lock, LONG).await.unwrap().release().await.unwrap();
    }
    let held = acquire(&two, "moved", LONG).await.unwrap();
    let waiter = Waiter::queued(&one, &server, "moved", LONG).await;
    let newer = acquire(&two, "newer", LONG).await.unwrap();
    server.restore(&backup).await.unwrap();
    for lost in [&held, &newer] {
        assert_eq!(within(lost.validity().lost()).await, LossReason::EntryGone);
    }
    let ended = waiter.ended().await;
    assert!(lost_its_place(&ended), "{ended:?}");
    within(kept.renew()).await.unwrap();
    // Another client can have the lost one at once.
    let next = acquire(&one, "newer", LONG).await.unwrap();
    assert!(next.token() > newer.token());
    let back = one.inspect(&name("moved")).await.unwrap();
    assert_eq!(back.len(), 1, "{back:?}");
    assert!(one.revoke(&name("moved"), back[0].attempt.unwrap()).await.unwrap());
    assert!(acquire(&two, "moved", LONG).await.unwrap().token() > held.token());
    kept.release().await.unwrap();
}

/// The server has the place of an attempt, and not its grant any more.
#[tokio::test]
async fn a_grant_that_a_restart_forgot_is_told_at_once_and_leaves_no_place() {
    for kind in [Kind::Exclusive, Kind::Shared] {
        let (server, holder, other) = two_drivers().await;
        let held = acquire(&holder, "orders", LONG).await.unwrap();
        let waiter = Waiter::queued_as(kind, &other, &server, "orders", LONG).await;
        server.command(&[b"SAVE"]).await.unwrap();
        held.release().await.unwrap();
        let lease = waiter.granted().await;
        server.kill();
        server.restart().await.unwrap();
        assert_eq!(within(lease.validity().lost()).await, LossReason::EntryGone);
        // Its place goes, too, although `lease` lives.
        until(async || queue_length(&server, "orders").await == 0).await;
        let back = holder.inspect(&name("orders")).await.unwrap();
        assert!(holder.revoke(&name("orders"), back[0].attempt.unwrap()).await.unwrap());
        acquire(&holder, "orders", LONG).await.unwrap().release().await.unwrap();
        nothing_is_left(&server).await;
    }
}
