//! Many at once: waiters, held locks, cancellations.

mod lab;

use std::{sync::Arc, time::Duration};

use lab::*;
use lock_core::{Attempt, DistributedLock};
use uuid::Uuid;

const TTL: Duration = Duration::from_secs(30);

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_thousand_waiters_are_served_in_order() {
    let server = server().await;
    let driver = driver(&server.url()).await;
    let mut lease = acquire(&driver, "orders", TTL).await.unwrap();
    let mut waiters = Vec::new();
    for _ in 0..1000 {
        waiters.push(Waiter::start(&driver, "orders", TTL));
    }
    until(async || queue_length(&server, "orders").await == 1000).await;
    let mut tokens = Vec::new();
    // They did not queue up in the order in which they were started: the server knows it.
    let order: Vec<_> = driver.inspect(&name("orders")).await.unwrap();
    let mut by_attempt: std::collections::HashMap<_, _> =
        waiters.into_iter().map(|waiter| (waiter.attempt.id(), waiter)).collect();
    for entry in &order[1..] {
        lease.release().await.unwrap();
        lease = by_attempt.remove(&entry.attempt.unwrap()).unwrap().granted().await;
        tokens.push(lease.token());
    }
    assert!(tokens.is_sorted());
    lease.release().await.unwrap();
    nothing_is_left(&server).await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn ten_thousand_locks_are_renewed_by_one_call_per_thousand() {
    const LOCKS: usize = 10_000;
    let server = server().await;
    let driver = driver(&server.url()).await;
    let ttl = Duration::from_secs(12);
    let mut leases = Vec::new();
    for i in 0..LOCKS {
        leases.push(acquire(&driver, &format!("n{i}"), ttl).await.unwrap());
    }
    let until_before = leases.iter().map(|lease| lease.validity().until()).min().unwrap();
    let before = server.counters().await.unwrap();
    until(async || leases.iter().all(|lease| lease.validity().until() > until_before + ttl / 2))
        .await;
    let calls = server.counters().await.unwrap().since(&before).get("cmd.evalsha");
    // Two or three rounds, each of ten calls; the first may skip locks that are still young.
    assert!((10..=30).contains(&calls), "{calls}");
    assert!(leases.iter().all(|lease| !lease.validity().has_ended()));
    driver.close().await.unwrap();
    nothing_is_left(&server).await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn cancelling_at_any_moment_leaves_nothing() {
    let server = server().await;
    let driver = driver(&server.url()).await;
    let attempts: Vec<_> = (0..64).map(|_| tokio::spawn(come_and_go(driver.clone()))).collect();
    for attempt in attempts {
        within(attempt).await.unwrap();
    }
    nothing_is_left(&server).await;
    acquire(&driver, "name-0", TTL).await.unwrap().release().await.unwrap();
}

/// Many attempts on few names, each cancelled after a random time.
async fn come_and_go(driver: Arc<lock_redis::RedisLock>) {
    for _ in 0..100 {
        let random = Uuid::new_v4().as_u64_pair().0;
        let name = format!("name-{}", random % 4);
        let attempt = Attempt::new();
        let cancel = async {
            tokio::time::sleep(Duration::from_micros(random / 4 % 3000)).await;
            attempt.cancel();
        };
        let acquire = driver.acquire(request(&name, TTL), attempt.clone());
        if let (Ok(lease), ()) = tokio::join!(acquire, cancel) {
            lease.release().await.unwrap();
        }
    }
}
