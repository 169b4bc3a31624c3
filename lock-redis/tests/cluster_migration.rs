//! A slot of a cluster moves while its locks are held and waited for.

mod lab;

use std::{
    sync::{
        Arc,
        atomic::{AtomicBool, AtomicU64, Ordering},
    },
    time::Duration,
};

use lab::*;
use lock_core::{Clock, DistributedLock, Kind, LockName};
use lock_lab::RedisCluster;
use lock_redis::RedisLock;

const TTL: Duration = Duration::from_secs(4);
const MOVES: usize = 20;

/// One name, taken again and again by several tasks of several clients.
struct Load {
    holders: [AtomicU64; 2],
    tokens: AtomicU64,
    grants: AtomicU64,
    over: AtomicBool,
}

impl Load {
    fn new() -> Arc<Self> {
        Arc::new(Self {
            holders: [AtomicU64::new(0), AtomicU64::new(0)],
            tokens: AtomicU64::new(0),
            grants: AtomicU64::new(0),
            over: AtomicBool::new(false),
        })
    }

    async fn work(self: Arc<Self>, driver: Arc<RedisLock>, lock: &'static str) {
        while !self.over.load(Ordering::Relaxed) {
            let lease = acquire(&driver, lock, TTL).await.unwrap();
            assert_eq!(self.holders[0].fetch_add(1, Ordering::SeqCst), 0, "two hold {lock}");
            let token = lease.token().value();
            assert!(self.tokens.fetch_max(token, Ordering::SeqCst) < token);
            tokio::task::yield_now().await;
            assert!(lease.validity().until() > Clock::Boot.now());
            self.holders[0].fetch_sub(1, Ordering::SeqCst);
            self.grants.fetch_add(1, Ordering::Relaxed);
            lease.release().await.unwrap();
        }
    }

    /// Two permits.
    async fn permits(self: Arc<Self>, driver: Arc<RedisLock>, lock: &'static str) {
        while !self.over.load(Ordering::Relaxed) {
            let lease = acquire_as(permits(1, 2), &driver, lock, TTL).await.unwrap();
            assert!(self.holders[1].fetch_add(1, Ordering::SeqCst) < 2, "three of two permits");
            tokio::task::yield_now().await;
            assert!(lease.validity().until() > Clock::Boot.now());
            self.holders[1].fetch_sub(1, Ordering::SeqCst);
            self.grants.fetch_add(1, Ordering::Relaxed);
            lease.release().await.unwrap();
        }
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_slot_moves_twenty_times_under_load_and_nothing_is_lost() {
    let redis = RedisCluster::builder().replicas(0).appendonly(false).start().await.unwrap();
    let url = format!("{}?layout=native", redis.url());
    let slot = RedisCluster::slot_of(b"{t}");
    let clients = [driver(&url).await, driver(&url).await, driver(&url).await];
    // Held all the time: alone, shared, as a leader; and a waiter for each.
    let held = [
        acquire(&clients[0], "{t}alone", TTL).await.unwrap(),
        acquire_as(Kind::Shared, &clients[0], "{t}shared", TTL).await.unwrap(),
        acquire_as(Kind::Shared, &clients[1], "{t}shared", TTL).await.unwrap(),
    ];
    let waiters: Vec<_> =
        ["{t}alone", "{t}shared"].map(|lock| Waiter::start(&clients[2], lock, TTL)).into();
    let load = Load::new();
    let mut tasks = Vec::new();
    for client in clients.iter().chain(&clients) {
        tasks.push(tokio::spawn(load.clone().work(client.clone(), "{t}mutex")));
        tasks.push(tokio::spawn(load.clone().permits(client.clone(), "{t}permits")));
    }
    let started = Clock::Boot.now();
    for _ in 0..MOVES {
        let before = load.grants.load(Ordering::Relaxed);
        let owner = redis.owner(slot).await.unwrap();
        redis.migrate(slot, (owner + 1) % 3).await.unwrap();
        // Each place of the slot serves.
        until(async || load.grants.load(Ordering::Relaxed) > before + 5).await;
    }
    let took = Clock::Boot.now().since(started);
    eprintln!("{MOVES} moves and {:?} grants in {took:?}", load.grants);
    load.over.store(true, Ordering::Relaxed);
    for task in tasks {
        within(task).await.unwrap();
    }
    assert!(waiters.iter().all(|waiter| !waiter.task.is_finished()));
    for lease in held {
        assert!(lease.validity().until() > Clock::Boot.now());
        lease.release().await.unwrap();
    }
    for waiter in waiters {
        waiter.granted().await.release().await.unwrap();
    }
    let kept = |key: &&Vec<u8>| !key.ends_with(b"\xFFfence") && !key.starts_with(b"{distlock}");
    assert_eq!(redis.keys().await.unwrap().iter().filter(kept).count(), 0);
}

/// A migration that stands still for longer than a TTL, with one of the keys moved.
#[tokio::test]
async fn a_lock_held_alone_survives_a_half_moved_slot_and_others_wait_for_its_end() {
    let redis = RedisCluster::builder().replicas(0).appendonly(false).start().await.unwrap();
    let url = format!("{}?layout=native", redis.url());
    let (one, two) = (driver(&url).await, driver(&url).await);
    let slot = RedisCluster::slot_of(b"{t}");
    let ttl = Duration::from_secs(1);
    let held = [
        acquire(&one, "{t}1", ttl).await.unwrap(),
        acquire(&one, "{t}2", ttl).await.unwrap(),
        acquire(&one, "{t}3", ttl).await.unwrap(),
    ];
    let from = redis.owner(slot).await.unwrap();
    let to = (from + 1) % 3;
    redis.begin_migration(slot, to).await.unwrap();
    for _ in 0..3 {
        assert!(redis.move_key(slot, from, to).await.unwrap());
    }
    let new = Waiter::start(&two, "{t}new", TTL);
    tokio::time::sleep(ttl * 2).await;
    let now = Clock::Boot.now();
    assert!(held.iter().all(|lease| !lease.validity().has_ended()));
    assert!(held.iter().all(|lease| lease.validity().until() > now));
    assert!(!new.task.is_finished(), "its keys could be at either node");
    while redis.move_key(slot, from, to).await.unwrap() {}
    redis.end_migration(slot, from, to).await.unwrap();
    let new = new.granted().await;
    for lease in held.into_iter().chain([new]) {
        lease.renew().await.unwrap();
        lease.release().await.unwrap();
    }
    let listed = one.names("{t}").await.unwrap();
    assert_eq!(listed, Vec::<LockName>::new());
}
