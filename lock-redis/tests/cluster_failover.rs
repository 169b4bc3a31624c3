//! Primaries of a cluster die while their locks are held and waited for.

mod lab;

use std::{
    collections::HashMap,
    sync::{
        Arc, Mutex,
        atomic::{AtomicBool, AtomicU64, Ordering},
    },
    time::Duration,
};

use lab::*;
use lock_core::{Clock, DistributedLock, LossReason};
use lock_lab::RedisCluster;
use lock_redis::RedisLock;

const TTL: Duration = Duration::from_secs(12);
const KILLS: usize = 5;

async fn cluster() -> RedisCluster {
    let builder = RedisCluster::builder().appendonly(false);
    builder.node_timeout(Duration::from_millis(1500)).start().await.unwrap()
}

/// The newest token of each name: what a fenced resource knows.
#[derive(Default)]
struct Fence {
    tokens: Mutex<HashMap<String, u64>>,
    grants: AtomicU64,
    lost: AtomicU64,
    over: AtomicBool,
}

impl Fence {
    fn newer(&self, lock: &str, token: u64) -> bool {
        let mut tokens = self.tokens.lock().unwrap();
        let last = tokens.entry(lock.to_owned()).or_default();
        let newer = token >= *last;
        *last = token.max(*last);
        newer
    }

    /// Takes a lock again and again. An outage is no error here; a loss must be a failover's.
    async fn work(self: Arc<Self>, driver: Arc<RedisLock>, lock: String) {
        while !self.over.load(Ordering::Relaxed) {
            let Ok(lease) = acquire(&driver, &lock, TTL).await else {
                tokio::task::yield_now().await;
                continue;
            };
            let token = lease.token().value();
            tokio::time::sleep(Duration::from_millis(20)).await;
            // A fenced resource refuses a holder whose lock has another one by now.
            if !self.newer(&lock, token) || lease.validity().has_ended() {
                self.lost.fetch_add(1, Ordering::Relaxed);
                if let Some(reason) = lease.validity().loss() {
                    assert_eq!(reason, LossReason::Failover, "{lock}");
                }
            }
            self.grants.fetch_add(1, Ordering::Relaxed);
            let _ = lease.release().await;
        }
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_primary_dies_five_times_and_nothing_is_stuck() {
    let redis = cluster().await;
    let (one, two) = (driver(&redis.url()).await, driver(&redis.url()).await);
    // Held all the time, each with a waiter.
    let names: Vec<_> = (0..6).map(|number| format!("held/{number}")).collect();
    let mut held = Vec::new();
    let mut waiters = Vec::new();
    for lock in &names {
        held.push(acquire(&one, lock, TTL).await.unwrap());
        waiters.push(Waiter::start(&two, lock, TTL));
    }
    for lock in &names {
        until(async || one.inspect(&name(lock)).await.unwrap().len() == 2).await;
    }
    redis.await_replicas().await.unwrap();
    let fence = Arc::new(Fence::default());
    let mut tasks = Vec::new();
    for number in 0..6 {
        for driver in [&one, &two] {
            let lock = format!("busy/{number}");
            tasks.push(tokio::spawn(fence.clone().work(driver.clone(), lock)));
        }
    }
    let started = Clock::Boot.now();
    for kill in 0..KILLS {
        let slot = [1000, 7000, 14000][kill % 3];
        let old = redis.owner(slot).await.unwrap();
        redis.node(old).kill();
        redis.owner_after(old, slot).await.unwrap();
        let served = fence.grants.load(Ordering::Relaxed);
        until(async || fence.grants.load(Ordering::Relaxed) > served + 12).await;
        redis.node(old).restart().await.unwrap();
        redis.await_replicas().await.unwrap();
    }
    eprintln!(
        "{:?} grants, {:?} lost, {:?}",
        fence.grants,
        fence.lost,
        Clock::Boot.now().since(started)
    );
    fence.over.store(true, Ordering::Relaxed);
    for task in tasks {
        within(task).await.unwrap();
    }
    // Replication had all of them, so none of them is lost, and each waiter is next.
    for (lease, waiter) in held.into_iter().zip(waiters) {
        assert_eq!(lease.validity().loss(), None);
        assert!(lease.validity().until() > Clock::Boot.now());
        lease.renew().await.unwrap();
        assert!(!waiter.task.is_finished());
        let token = lease.token();
        lease.release().await.unwrap();
        let next = waiter.granted().await;
        assert!(next.token() > token);
        next.release().await.unwrap();
    }
}

#[tokio::test]
async fn a_lock_that_the_replica_lacks_is_lost_with_that_reason_and_the_next_token_is_greater() {
    let redis = cluster().await;
    let (one, two) = (driver(&redis.url()).await, driver(&redis.url()).await);
    let known = acquire(&one, "known", TTL).await.unwrap();
    let slot = RedisCluster::slot_of(b"orders");
    let elsewhere = (0..).map(|number| format!("other/{number}"));
    let primary = redis.owner(slot).await.unwrap();
    let mut elsewhere = elsewhere
        .filter(|lock| usize::from(RedisCluster::slot_of(lock.as_bytes())) * 3 / 16384 != primary);
    let other = acquire(&one, &elsewhere.next().unwrap(), TTL).await.unwrap();
    let replica = redis.node(primary + 3);
    redis.await_replicas().await.unwrap();
    pause(replica).await;
    let lost = acquire(&one, "orders", TTL).await.unwrap();
    redis.node(primary).kill();
    redis.owner_after(primary, slot).await.unwrap();
    until(async || lost.validity().has_ended()).await;
    assert_eq!(lost.validity().loss(), Some(LossReason::Failover));
    let next = acquire(&two, "orders", TTL).await.unwrap();
    assert!(next.token() > lost.token());
    for lease in [known, other] {
        lease.renew().await.unwrap();
        assert_eq!(lease.validity().loss(), None);
    }
    next.release().await.unwrap();
}
