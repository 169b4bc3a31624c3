//! The last token of a name: its lifetime, and the tokens after it is gone.

use std::time::Duration;

use futures_util::{StreamExt, stream};
use lock_core::{Attempt, DistributedLock, Kind};
use lock_lab::Redis;

use crate::lab::{self, *};

const TTL: Duration = Duration::from_secs(10);
const DAY: i64 = 24 * 3600 * 1000;

async fn pttl(server: &Redis, key: &[u8]) -> i64 {
    server.command(&[b"PTTL", key]).await.unwrap().parse().unwrap()
}

async fn every_key_ends_within_a_day(server: &Redis) -> usize {
    let script = b"local kept = 0 for _, key in ipairs(redis.call('KEYS', '*')) do \
                   local left = redis.call('PTTL', key) \
                   if left < 0 or left > 86400000 then kept = kept + 1 end end return kept";
    assert_eq!(server.command(&[b"EVAL", script, b"0"]).await.unwrap(), "0", "keys that stay");
    server.keys().await.unwrap().len()
}

#[tokio::test]
async fn names_that_were_locked_once_leave_nothing_after_a_day() {
    const NAMES: usize = 2000;
    let (server, driver) = one_driver().await;
    stream::iter(0..NAMES)
        .for_each_concurrent(64, async |i| {
            let lease = acquire(&driver, &format!("n{i}"), TTL).await.unwrap();
            lease.release().await.unwrap();
        })
        .await;
    let keys = every_key_ends_within_a_day(&server).await;
    assert!(keys <= NAMES + 1, "{keys}");
}

#[tokio::test]
async fn the_fence_of_every_kind_ends_within_a_day() {
    let (server, driver) = one_driver().await;
    for kind in [Kind::Exclusive, Kind::Shared, permits(1, 3)] {
        let held = acquire_as(kind, &driver, "orders", TTL).await.unwrap();
        let waiter = Waiter::queued(&driver, &server, "orders", TTL).await;
        held.release().await.unwrap();
        waiter.granted().await.release().await.unwrap();
        every_key_ends_within_a_day(&server).await;
        server.command(&[b"FLUSHALL"]).await.unwrap();
    }
    let simple = lab::driver(&format!("{}?mode=simple", server.url())).await;
    acquire(&simple, "orders", TTL).await.unwrap().release().await.unwrap();
    let mut candidate = request("orders", TTL);
    candidate.value = Some(b"10.0.0.7".to_vec().into());
    let leader = driver.acquire(candidate, Attempt::new()).await.unwrap();
    leader.release().await.unwrap();
    every_key_ends_within_a_day(&server).await;
}

#[tokio::test]
async fn a_fence_without_an_end_gets_one_when_it_is_written() {
    let (server, driver) = one_driver().await;
    let fence = companion("orders", "fence");
    for (kind, old) in [(Kind::Exclusive, b"1"), (Kind::Shared, b"2"), (permits(1, 2), b"3")] {
        server.command(&[b"SET", &fence, old]).await.unwrap();
        acquire_as(kind, &driver, "orders", TTL).await.unwrap().release().await.unwrap();
        assert!((DAY - 60_000..=DAY).contains(&pttl(&server, &fence).await), "{kind:?}");
    }
    // Ahead of the server's clock.
    let ahead = b"9000000000000000";
    server.command(&[b"SET", &fence, ahead]).await.unwrap();
    let lease = acquire(&driver, "orders", TTL).await.unwrap();
    assert_eq!(lease.token().value(), 9_000_000_000_000_001);
    assert!((DAY - 60_000..=DAY).contains(&pttl(&server, &fence).await));
}

#[tokio::test]
async fn tokens_rise_after_the_fence_has_gone() {
    let (server, driver) = one_driver().await;
    let fence = companion("orders", "fence");
    let mut last = 0;
    for kind in [Kind::Exclusive, Kind::Shared, permits(1, 2), Kind::Exclusive] {
        let lease = acquire_as(kind, &driver, "orders", TTL).await.unwrap();
        assert!(lease.token().value() > last, "{kind:?}");
        last = lease.token().value();
        lease.release().await.unwrap();
        server.command(&[b"PEXPIRE", &fence, b"1"]).await.unwrap();
        until(async || pttl(&server, &fence).await == -2).await;
    }
}

#[tokio::test]
async fn a_renewal_of_a_lock_that_is_held_for_long_keeps_its_fence() {
    let (server, driver) = one_driver().await;
    let fence = companion("orders", "fence");
    let lease = acquire(&driver, "orders", TTL).await.unwrap();
    server.command(&[b"PEXPIRE", &fence, b"60000"]).await.unwrap();
    lease.renew().await.unwrap();
    assert!((DAY - 60_000..=DAY).contains(&pttl(&server, &fence).await));
    let seen = driver.inspect(&name("orders")).await.unwrap();
    assert_eq!(seen[0].holder.token, Some(lease.token()));
    lease.release().await.unwrap();
}
