//! Many at once: waiters, held locks, cancellations.

use std::{sync::Arc, time::Duration};

use futures_util::future::join_all;
use lock_core::{Attempt, DistributedLock, Entry, Kind};
use lock_lab::Redis;
use lock_redis::RedisLock;
use uuid::Uuid;

use crate::lab::{undisturbed::undisturbed, *};

const TTL: Duration = Duration::from_secs(30);

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_thousand_waiters_are_served_in_order() {
    let (server, driver) = one_driver().await;
    let mut lease = acquire(&driver, "orders", TTL).await.unwrap();
    let mut waiters = Vec::new();
    for _ in 0..1000 {
        waiters.push(Waiter::start(&driver, "orders", TTL));
    }
    until(async || queue_length(&server, "orders").await == 1000).await;
    let mut tokens = Vec::new();
    // They did not queue up in the order in which they were started. The server knows the order.
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
    let (server, driver) = one_driver().await;
    let ttl = Duration::from_secs(12);
    let mut leases = Vec::new();
    for hundred in 0..LOCKS / 100 {
        let names: Vec<_> = (0..100).map(|i| format!("n{}", hundred * 100 + i)).collect();
        let taken = names.iter().map(|name| acquire(&driver, name, ttl));
        leases.extend(join_all(taken).await.into_iter().map(Result::unwrap));
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

/// A round of the waiters takes longer than the lock lives without a renewal.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_short_lock_is_renewed_between_the_waiters_of_a_crowd() {
    const WAITERS: usize = 5000;
    let (server, proxy, far, near) = far_and_near().await;
    let busy = acquire(&near, "orders", TTL * 20).await.unwrap();
    let ttl = Duration::from_secs(12);
    let waiters: Vec<_> = (0..WAITERS).map(|_| Waiter::start(&far, "orders", ttl)).collect();
    until(async || queue_length(&server, "orders").await == WAITERS).await;
    let short = Duration::from_secs(3);
    let calls = async || server.counters().await.unwrap().get("cmd.evalsha");
    // A machine that stands still for a third of the TTL holds up a renewal.
    undisturbed(short / 3, async || {
        let short = acquire(&far, "short", short).await.unwrap();
        let before = calls().await;
        // A round has 25 requests. Each takes this twice, and they go one after the other.
        proxy.delay(Duration::from_millis(100));
        until(async || calls().await >= before + 50).await;
        let (loss, has_ended) = (short.validity().loss(), short.validity().has_ended());
        proxy.delay(Duration::ZERO);
        let released = within(short.release()).await;
        match (has_ended, loss, &released) {
            (false, None, Ok(())) => Ok(()),
            _ => Err(format!("ended: {has_ended}, lost: {loss:?}, {released:?}")),
        }
    })
    .await;
    waiters.iter().for_each(|waiter| waiter.task.abort());
    within(busy.release()).await.unwrap();
}

/// The time that the server has spent on searches of queues for attempts that leave.
async fn searched(server: &Redis) -> u64 {
    let stats = server.command(&[b"INFO", b"commandstats"]).await.unwrap();
    let line = stats.lines().find_map(|line| line.strip_prefix("cmdstat_lrem:"));
    let spent = line.and_then(|line| line.split(',').find_map(|part| part.strip_prefix("usec=")));
    spent.map_or(0, |micros| micros.parse().unwrap())
}

/// In another order the server would search half of the queue for each of them.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_close_leaves_a_queue_in_its_order() {
    let mut spent = Vec::new();
    for waiters in [1000, 8000] {
        let (server, driver) = one_driver().await;
        let _held = acquire(&driver, "orders", TTL * 10).await.unwrap();
        let all: Vec<_> =
            (0..waiters).map(|_| Waiter::start(&driver, "orders", TTL * 10)).collect();
        until(async || queue_length(&server, "orders").await == waiters).await;
        let before = searched(&server).await;
        within(driver.close()).await.unwrap();
        spent.push(searched(&server).await - before);
        for waiter in all {
            assert!(waiter.ended().await.is_err());
        }
        nothing_is_left(&server).await;
    }
    // Eight times as many, each of which may cost three times as much. The server measures the time
    // of day: on a busy machine, others may have it in between.
    assert!(spent[0] > 0 && spent[1] <= spent[0] * 24 + 50_000, "{spent:?} microseconds");
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn cancelling_at_any_moment_leaves_nothing() {
    let (server, driver) = one_driver().await;
    let attempts: Vec<_> = (0..64).map(|_| tokio::spawn(come_and_go(driver.clone()))).collect();
    for attempt in attempts {
        within(attempt).await.unwrap();
    }
    nothing_is_left(&server).await;
    acquire(&driver, "name-0", TTL).await.unwrap().release().await.unwrap();
}

/// Many attempts on few names, each cancelled after a random time.
async fn come_and_go(driver: Arc<RedisLock>) {
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

/// Attempts of all kinds come, convert, are revoked, are cancelled and go. At every look, exactly
/// the attempts that the queue rule admits hold the lock.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn the_holders_are_the_attempts_that_the_rule_admits() {
    let server = server().await;
    let drivers = [driver(&server.url()).await, driver(&server.url()).await];
    let mut workers: Vec<_> =
        (0..12).map(|i| tokio::spawn(come_and_convert(drivers[i % 2].clone()))).collect();
    let (mut looks, mut shared) = (0, 0);
    while !workers.is_empty() {
        let queue = drivers[0].inspect(&name("orders")).await.unwrap();
        let mut judged: Vec<_> = queue.clone();
        judged.iter_mut().for_each(|entry| entry.holds = false);
        Entry::judge(&mut judged);
        assert_eq!(queue, judged);
        looks += 1;
        shared += usize::from(queue.iter().filter(|entry| entry.holds).count() > 1);
        let victim = queue.get(looks % 7).filter(|_| looks % 50 == 0);
        if let Some(attempt) = victim.and_then(|entry| entry.attempt) {
            drivers[1].revoke(&name("orders"), attempt).await.unwrap();
        }
        while let Some(done) = workers.iter().position(|worker| worker.is_finished()) {
            workers.remove(done).await.unwrap();
        }
    }
    assert!(shared > 20, "only {shared} of {looks} looks saw several holders");
    nothing_is_left(&server).await;
}

async fn come_and_convert(driver: Arc<RedisLock>) {
    let kinds = [Kind::Exclusive, Kind::Shared, Kind::Shared, permits(1, 3), permits(2, 3)];
    for _ in 0..60 {
        let random = usize::try_from(Uuid::new_v4().as_u64_pair().0 >> 16).unwrap();
        let kind = kinds[random % kinds.len()];
        let attempt = Attempt::new();
        let cancel = async {
            let patience = if random % 3 == 0 { 1 } else { 20_000 };
            tokio::time::sleep(Duration::from_millis(patience)).await;
            attempt.cancel();
            std::future::pending().await
        };
        let acquire = driver.acquire(request_of(kind, "orders", TTL), attempt.clone());
        let lease = tokio::select! {
            lease = acquire => lease,
            never = cancel => never,
        };
        // Revoked, or cancelled.
        let Ok(lease) = lease else { continue };
        if kind == Kind::Exclusive && lease.downgrade().await.is_ok() {
            let _ = lease.try_upgrade().await;
        }
        tokio::time::sleep(Duration::from_millis(u64::from(random % 2 == 0))).await;
        lease.release().await.unwrap();
    }
}
