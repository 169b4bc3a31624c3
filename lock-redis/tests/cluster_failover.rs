//! Primaries of a cluster die while their locks are held and waited for.

use std::{
    collections::HashMap,
    sync::{
        Arc, Mutex,
        atomic::{AtomicBool, AtomicU64, AtomicUsize, Ordering},
    },
    time::Duration,
};

use lock_core::{Clock, DistributedLock, Error, Lease, LossReason};
use lock_lab::RedisCluster;
use lock_redis::RedisLock;

use crate::lab::*;

const TTL: Duration = Duration::from_secs(40);
/// Of locks that are taken again and again: what a failover forgets of them is over soon.
const BUSY_TTL: Duration = Duration::from_secs(4);
const KILLS: usize = 5;

async fn cluster() -> RedisCluster {
    let builder = RedisCluster::builder().appendonly(false);
    builder.node_timeout(Duration::from_millis(1500)).start().await.unwrap()
}

/// The primary that has a lock at first. The name must need no escape: it is the key.
fn primary_of(lock: &str) -> usize {
    usize::from(RedisCluster::slot_of(lock.as_bytes())) * 3 / 16384
}

/// Two names for each primary.
fn names(start: &str) -> Vec<String> {
    let of = |primary| {
        let all = (0..).map(move |number| format!("{start}-{number}"));
        all.filter(move |lock| primary_of(lock) == primary).take(2)
    };
    (0..3).flat_map(of).collect()
}

/// The newest token of each name: what a fenced resource knows. And the kills so far: kill `n` ends
/// the server that has the names of primary `n % 3`.
#[derive(Default)]
struct Fence {
    tokens: Mutex<HashMap<String, u64>>,
    grants: [AtomicU64; 6],
    told: AtomicU64,
    refused: AtomicU64,
    /// Number of kills that have begun, and of those after which the server was dead.
    begun: AtomicUsize,
    done: AtomicUsize,
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

    /// Fails unless the server of a lock died since `dead` servers were dead.
    fn must_be_a_failover(&self, lock: &str, dead: usize, what: &str) {
        let mut kills = dead..self.begun.load(Ordering::SeqCst);
        assert!(kills.any(|kill| kill % 3 == primary_of(lock)), "{lock}: {what} without a kill");
    }

    /// Takes a lock again and again. A loss must be told as a failover's, or the fence refuses the
    /// holder; and the lock was asked for before its server was dead, and lost after the kill began.
    async fn work(self: Arc<Self>, driver: Arc<RedisLock>, number: usize, lock: String) {
        while !self.over.load(Ordering::Relaxed) {
            let dead = self.done.load(Ordering::SeqCst);
            let lease = match acquire(&driver, &lock, BUSY_TTL).await {
                Ok(lease) => lease,
                Err(Error::Unavailable { .. }) => {
                    tokio::task::yield_now().await;
                    continue;
                }
                Err(Error::PlaceLost { .. }) => {
                    self.must_be_a_failover(&lock, dead, "a place lost");
                    continue;
                }
                Err(error) => panic!("{error:?}"),
            };
            let token = lease.token().value();
            let admitted = self.newer(&lock, token);
            tokio::time::sleep(Duration::from_millis(20)).await;
            if !admitted || !self.newer(&lock, token) {
                self.must_be_a_failover(&lock, dead, "refused by the fence");
                self.refused.fetch_add(1, Ordering::Relaxed);
            }
            if let Some(reason) = lease.validity().loss() {
                assert_eq!(reason, LossReason::Failover, "{lock}");
                self.must_be_a_failover(&lock, dead, "lost");
                self.told.fetch_add(1, Ordering::Relaxed);
            } else if lease.validity().until() <= Clock::Boot.now() {
                self.must_be_a_failover(&lock, dead, "at its deadline");
            }
            self.grants[number].fetch_add(1, Ordering::Relaxed);
            let _ = lease.release().await;
        }
    }

    fn counts(&self) -> Vec<u64> {
        self.grants.iter().map(|grants| grants.load(Ordering::Relaxed)).collect()
    }

    /// Each of the busy locks is granted again, to both clients if they take turns.
    async fn until_all_go_on(&self) {
        let before = self.counts();
        until(async || self.counts().iter().zip(&before).all(|(now, before)| *now > before + 2))
            .await;
    }
}

/// A lock that was granted after the replica had got its last write.
struct Victim(String, Box<dyn Lease>);

impl Victim {
    async fn take(redis: &RedisCluster, primary: usize, client: &RedisLock, lock: &str) -> Self {
        pause(redis.node((primary + 3) % 6)).await;
        Self(lock.to_owned(), acquire(client, lock, TTL).await.unwrap())
    }

    /// Its holder is told, and a fenced resource refuses it as soon as it knows the next one.
    async fn ends_told_and_fenced(self, client: &RedisLock, fence: &Fence) {
        let Self(lock, lost) = self;
        until(async || lost.validity().has_ended()).await;
        assert_eq!(lost.validity().loss(), Some(LossReason::Failover));
        let next = acquire(client, &lock, TTL).await.unwrap();
        assert!(fence.newer(&lock, next.token().value()));
        assert!(!fence.newer(&lock, lost.token().value()));
        next.release().await.unwrap();
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_primary_dies_five_times_and_only_what_its_replica_lacked_is_lost() {
    let redis = cluster().await;
    let (one, two) = (driver(&redis.url()).await, driver(&redis.url()).await);
    // Held all the time, each with a waiter.
    let mut held = Vec::new();
    let mut waiters = Vec::new();
    for lock in &names("held") {
        held.push(acquire(&one, lock, TTL).await.unwrap());
        waiters.push(Waiter::start(&two, lock, TTL));
        until(async || one.inspect(&name(lock)).await.unwrap().len() == 2).await;
    }
    redis.await_replicas().await.unwrap();
    let fence = Arc::new(Fence::default());
    let mut tasks = Vec::new();
    for (number, lock) in names("busy").into_iter().enumerate() {
        for driver in [&one, &two] {
            tasks.push(tokio::spawn(fence.clone().work(driver.clone(), number, lock.clone())));
        }
    }
    let started = Clock::Boot.now();
    for kill in 0..KILLS {
        fence.until_all_go_on().await;
        let victim = &names("victim")[kill % 3 * 2];
        let slot = RedisCluster::slot_of(victim.as_bytes());
        let old = redis.owner(slot).await.unwrap();
        let victim = match kill % 2 {
            0 => None,
            _ => Some(Victim::take(&redis, old, &one, victim).await),
        };
        fence.begun.store(kill + 1, Ordering::SeqCst);
        redis.node(old).kill();
        fence.done.store(kill + 1, Ordering::SeqCst);
        redis.owner_after(old, slot).await.unwrap();
        if let Some(victim) = victim {
            victim.ends_told_and_fenced(&two, &fence).await;
        }
        fence.until_all_go_on().await;
        redis.node(old).restart().await.unwrap();
        redis.await_replicas().await.unwrap();
    }
    let took = Clock::Boot.now().since(started);
    let (told, refused) = (&fence.told, &fence.refused);
    eprintln!(
        "{KILLS} kills in {took:?}: {:?} grants, {told:?} told, {refused:?} refused",
        fence.counts()
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
    let elsewhere = (0..).map(|number| format!("other-{number}"));
    let primary = redis.owner(slot).await.unwrap();
    let mut elsewhere = elsewhere.filter(|lock| primary_of(lock) != primary);
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
