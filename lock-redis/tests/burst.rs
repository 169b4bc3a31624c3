//! Bursts: thousands of requests of one client at a time, and their effect on the locks it holds.

use std::{sync::Arc, time::Duration};

use futures_util::future::join_all;
use lock_core::{Attempt, Clock, DistributedLock, Locks};
use lock_lab::Redis;
use lock_redis::RedisLock;

use crate::lab::{beat::Beat, *};

const TTL: Duration = Duration::from_secs(30);
const BURST: usize = 4000;

async fn calls(server: &Redis) -> u64 {
    server.counters().await.unwrap().get("cmd.evalsha")
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_burst_of_acquires_ends_nothing_that_is_held() {
    let (_server, driver) = one_driver().await;
    let locks = Locks::of(driver);
    let ttl = Duration::from_secs(2);
    let held = locks.lock("held").unwrap().ttl(ttl).acquire().await.unwrap();
    let end = Clock::Boot.now() + ttl * 3;
    let tasks: Vec<_> = (0..BURST)
        .map(|i| {
            let lock = locks.lock(format!("n{i}")).unwrap();
            tokio::spawn(async move {
                while Clock::Boot.now() < end {
                    lock.acquire().await.unwrap().release().await.unwrap();
                }
            })
        })
        .collect();
    let (mut least, beat) = (ttl, Beat::start());
    while Clock::Boot.now() < end {
        tokio::time::sleep(Duration::from_millis(10)).await;
        least = least.min(held.remaining());
    }
    let late = beat.late();
    for task in tasks {
        task.abort();
        let ended = within(task).await;
        assert!(!ended.is_err_and(|error| error.is_panic()));
    }
    // Renewed every third of its TTL, it always has more than half of it left. A slow machine
    // delays each task, and a renewal is four tasks in a row.
    assert!(least + late * 4 > ttl / 2, "{least:?}, tasks are late by {late:?}");
    if held.is_valid() {
        held.release().await.unwrap();
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_burst_waits_in_this_process_and_a_cancelled_part_is_never_sent() {
    let (server, proxy, far) = behind_a_proxy().await;
    acquire(&far, "warm", TTL).await.unwrap().release().await.unwrap();
    let before = calls(&server).await;
    proxy.delay(Duration::from_millis(500));
    let attempts: Vec<_> = (0..BURST).map(|i| start(&far, &format!("n{i}"))).collect();
    // Now all have sent a request, or wait for their turn.
    let sent = proxy.stats().chunks_up;
    until(async || proxy.stats().chunks_up > sent).await;
    attempts.iter().for_each(|waiter| waiter.attempt.cancel());
    let ended = within(join_all(attempts.into_iter().map(|waiter| waiter.task))).await;
    proxy.delay(Duration::ZERO);
    let granted: Vec<_> = ended.into_iter().filter_map(|ended| ended.unwrap().ok()).collect();
    within(join_all(granted.iter().map(|lease| lease.release()))).await;
    nothing_is_left(&server).await;
    let calls = calls(&server).await - before;
    // The requests in flight, and their releases.
    assert!(calls <= 600, "{calls}");
}

fn start(driver: &Arc<RedisLock>, lock: &str) -> Waiter {
    Waiter::start(driver, lock, TTL)
}

/// Uses one thread, so that tasks start in the order in which they are spawned.
#[tokio::test]
async fn a_burst_is_served_in_order() {
    let (server, proxy, far) = behind_a_proxy().await;
    let held = acquire(&far, "orders", TTL).await.unwrap();
    proxy.delay(Duration::from_millis(2));
    let waiters: Vec<_> = (0..1000).map(|_| start(&far, "orders")).collect();
    until(async || queue_length(&server, "orders").await == 1000).await;
    let queue = far.inspect(&name("orders")).await.unwrap();
    let seen: Vec<_> = queue[1..].iter().filter_map(|entry| entry.attempt).collect();
    let asked: Vec<_> = waiters.iter().map(|waiter| waiter.attempt.id()).collect();
    assert_eq!(seen, asked);
    waiters.iter().for_each(|waiter| waiter.attempt.cancel());
    held.release().await.unwrap();
    nothing_is_left(&server).await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn releases_of_an_outage_are_few_requests_after_it() {
    const LOCKS: usize = 10_000;
    let (server, proxy, far) = behind_a_proxy().await;
    let names: Vec<_> = (0..LOCKS).map(|i| format!("n{i}")).collect();
    let leases = join_all(names.iter().map(async |name| {
        // No short TTL: the machine may be busy, and a request may wait for 20 s.
        far.acquire(request(name, TTL * 4), Attempt::new()).await.unwrap()
    }));
    let leases = leases.await;
    let before = calls(&server).await;
    proxy.refuse();
    let mut releases: Vec<_> = leases.iter().map(|lease| lease.release()).collect();
    let mut all = std::pin::pin!(join_all(releases.drain(..)));
    // Time to notice that the server does not answer.
    let early = tokio::time::timeout(Duration::from_millis(500), &mut all).await;
    assert!(early.is_err());
    proxy.heal();
    for released in within(all).await {
        released.unwrap();
    }
    let calls = calls(&server).await - before;
    // 50 of 200 each, the requests already under way, and rounds.
    assert!(calls <= 150, "{calls}");
    nothing_is_left(&server).await;
}

/// Uses one thread, so that most attempts are not sent yet when the close begins.
#[tokio::test]
async fn a_close_amid_a_burst_leaves_no_lock() {
    let redis = deployments::sentinels().await;
    for options in ["", "?wait_replicas=1"] {
        let server = redis.node(0);
        let driver = driver(&format!("{}{options}", server.url())).await;
        let attempts: Vec<_> = (0..2000).map(|i| start(&driver, &format!("n{i}"))).collect();
        until(async || calls(server).await > 0).await;
        within(driver.close()).await.unwrap();
        // Sooner than by the end of their TTL.
        nothing_is_left(server).await;
        for attempt in attempts {
            let _ = within(attempt.task).await.unwrap();
        }
        server.command(&[b"CONFIG", b"RESETSTAT"]).await.unwrap();
    }
}
