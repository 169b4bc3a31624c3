//! Withdrawals that the server has lost: it grants the lock to attempts that have left.

use std::time::Duration;

use lock_core::{DistributedLock, Kind};

use crate::lab::*;

/// So long that nothing expires while a test waits.
const LONG: Duration = Duration::from_secs(600);

#[tokio::test]
async fn a_grant_to_an_attempt_that_has_left_is_given_back() {
    for kind in [Kind::Exclusive, Kind::Shared, permits(1, 2)] {
        let (server, holder, leaver) = two_drivers().await;
        let held = acquire(&holder, "orders", LONG).await.unwrap();
        let waiter = Waiter::queued_as(kind, &leaver, &server, "orders", LONG).await;
        server.command(&[b"SAVE"]).await.unwrap();
        waiter.attempt.cancel();
        assert!(is_contended(&waiter.ended().await));
        assert_eq!(queue_length(&server, "orders").await, 0);
        server.kill();
        server.restart().await.unwrap();
        assert_eq!(queue_length(&server, "orders").await, 1, "the withdrawal is lost");
        // Its client listens again.
        leaver.inspect(&name("orders")).await.unwrap();
        held.release().await.unwrap();
        nothing_is_left(&server).await;
        acquire(&holder, "orders", LONG).await.unwrap().release().await.unwrap();
    }
}
