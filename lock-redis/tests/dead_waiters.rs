//! Dead waiters in a queue, and their effect on the living ones.

use std::{sync::Arc, time::Duration};

use lock_lab::Redis;
use lock_redis::RedisLock;

use crate::lab::*;

const TTL: Duration = Duration::from_secs(60);
/// Longer than any test, far shorter than the expiry that a renewal sets.
const SHORTENED: u64 = 100_000;

async fn pttl(server: &Redis, key: &[u8]) -> i64 {
    server.command(&[b"PTTL", key]).await.unwrap().parse().unwrap()
}

/// Shortens the life of a queue's keys, as if no waiter had kept them alive for two days.
async fn age(server: &Redis, lock: &str) {
    for what in ["queue", "waiting"] {
        let age: &[&[u8]] = &[b"PEXPIRE", &companion(lock, what), b"90000"];
        assert_eq!(server.command(age).await.unwrap(), "1", "{what}");
    }
}

async fn is_kept(server: &Redis, lock: &str) -> bool {
    let left = i64::try_from(SHORTENED).unwrap();
    pttl(server, &companion(lock, "queue")).await > left
        && pttl(server, &companion(lock, "waiting")).await > left
}

/// Starts waiters that end without a request when their client is cut off.
async fn crowd(driver: &Arc<RedisLock>, server: &Redis, lock: &str, ttl: Duration, count: usize) {
    let before = queue_length(server, lock).await;
    for _ in 0..count {
        Waiter::start(driver, lock, ttl);
    }
    until(async || queue_length(server, lock).await == before + count).await;
}

#[tokio::test]
async fn a_renewal_of_a_waiter_that_is_not_first_keeps_the_queue() {
    let (server, near) = one_driver().await;
    // The first one is renewed long after this test.
    let held = acquire(&near, "orders", TTL * 10).await.unwrap();
    let first = Waiter::queued(&near, &server, "orders", TTL * 10).await;
    let second = Waiter::queued(&near, &server, "orders", Duration::from_secs(6)).await;
    age(&server, "orders").await;
    until(async || is_kept(&server, "orders").await).await;
    held.release().await.unwrap();
    first.granted().await.release().await.unwrap();
    second.granted().await.release().await.unwrap();
    nothing_is_left(&server).await;
}

#[tokio::test]
async fn a_waiter_that_comes_keeps_the_queue() {
    let (server, near) = one_driver().await;
    let held = acquire(&near, "orders", TTL).await.unwrap();
    let first = Waiter::queued(&near, &server, "orders", TTL).await;
    age(&server, "orders").await;
    let second = Waiter::queued(&near, &server, "orders", TTL).await;
    assert!(is_kept(&server, "orders").await);
    held.release().await.unwrap();
    first.granted().await.release().await.unwrap();
    second.granted().await.release().await.unwrap();
    nothing_is_left(&server).await;
}

#[tokio::test]
async fn a_dead_first_waiter_is_removed_behind_a_living_holder() {
    let (server, proxy, far, near) = far_and_near().await;
    let held = acquire(&near, "orders", TTL).await.unwrap();
    crowd(&far, &server, "orders", Duration::from_millis(600), 1).await;
    let second = Waiter::queued(&near, &server, "orders", Duration::from_secs(6)).await;
    proxy.cut();
    until(async || queue_length(&server, "orders").await == 1).await;
    held.release().await.unwrap();
    second.granted().await.release().await.unwrap();
    nothing_is_left(&server).await;
}

#[tokio::test]
async fn the_dead_behind_a_living_first_waiter_are_removed_in_few_rounds() {
    const DEAD: usize = 300;
    let (server, proxy, far, near) = far_and_near().await;
    let held = acquire(&near, "orders", TTL).await.unwrap();
    // It lives on while the machine stands still for a while.
    let first = Waiter::queued(&near, &server, "orders", Duration::from_secs(6)).await;
    crowd(&far, &server, "orders", Duration::from_secs(1), DEAD).await;
    let last = Waiter::queued(&near, &server, "orders", TTL).await;
    proxy.cut();
    let before = server.counters().await.unwrap();
    until(async || queue_length(&server, "orders").await == 2).await;
    let rounds = server.counters().await.unwrap().since(&before).get("cmd.evalsha");
    // One page of 32 per round, one lap before they are dead, and a margin for a slow machine.
    assert!(rounds < 40, "{rounds}");
    let records = server.command(&[b"HLEN", &companion("orders", "waiting")]).await.unwrap();
    assert_eq!(records, "2");
    held.release().await.unwrap();
    first.granted().await.release().await.unwrap();
    last.granted().await.release().await.unwrap();
    nothing_is_left(&server).await;
}

/// The queue alone was evicted or deleted. Those that wait know nothing of it, and one more comes.
#[tokio::test]
async fn a_queue_that_is_gone_is_made_anew_in_the_order_of_arrival() {
    for comes in [false, true] {
        let (server, driver) = one_driver().await;
        let ttl = Duration::from_secs(3);
        let holder = acquire(&driver, "orders", Duration::from_secs(600)).await.unwrap();
        let mut waiters = Vec::new();
        for _ in 0..3 {
            waiters.push(Waiter::queued(&driver, &server, "orders", ttl).await);
        }
        let queue = companion("orders", "queue");
        assert_eq!(server.command(&[b"DEL", &queue]).await.unwrap(), "1");
        if comes {
            waiters.push(Waiter::queued(&driver, &server, "orders", ttl).await);
            until(async || queue_length(&server, "orders").await == 4).await;
        }
        // Without a queue, the lock is free then until the next round.
        holder.release().await.unwrap();
        for waiter in waiters {
            waiter.granted().await.release().await.unwrap();
        }
        nothing_is_left(&server).await;
    }
}
