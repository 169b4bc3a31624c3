//! A slot of a cluster moves while its locks are held and waited for.

use std::{
    collections::BTreeSet,
    sync::{
        Arc,
        atomic::{AtomicBool, AtomicU64, Ordering},
    },
    time::Duration,
};

use lock_core::{Clock, DistributedLock, Error, Kind, LockName};
use lock_lab::RedisCluster;
use lock_redis::RedisLock;

use crate::lab::{
    election::{campaign, next_value, observe},
    *,
};

const TTL: Duration = Duration::from_secs(12);
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
        acquire_as(permits(2, 3), &clients[0], "{t}permit", TTL).await.unwrap(),
        campaign(&clients[1], "{t}leader", b"first", TTL).await,
    ];
    let mut waiters = Vec::new();
    for lock in ["{t}alone", "{t}shared", "{t}permit", "{t}leader"] {
        waiters.push(Waiter::start(&clients[2], lock, TTL));
        until(async || clients[2].inspect(&name(lock)).await.unwrap().len() > 1).await;
    }
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
    let mut observed = observe(&clients[2], "{t}leader").await;
    assert_eq!(next_value(&mut observed).await.as_deref(), Some("first"));
    for lease in held {
        assert_eq!(lease.validity().loss(), None);
        assert!(lease.validity().until() > Clock::Boot.now());
        lease.release().await.unwrap();
    }
    for waiter in waiters {
        waiter.granted().await.release().await.unwrap();
    }
    let kept = |key: &&Vec<u8>| !key.ends_with(b"\xFFfence") && !key.starts_with(b"{distlock}");
    assert_eq!(redis.keys().await.unwrap().iter().filter(kept).count(), 0);
}

/// A cluster with a client, and a slot that begins to move. Returns also its two nodes.
async fn moving(slot: u16) -> (RedisCluster, Arc<RedisLock>, usize, usize) {
    // No node is taken for dead: without replicas the slots would be nobody's.
    let builder = RedisCluster::builder().replicas(0).appendonly(false).node_timeout(TTL * 50);
    let redis = builder.start().await.unwrap();
    let client = driver(&format!("{}?layout=native", redis.url())).await;
    let from = redis.owner(slot).await.unwrap();
    (redis, client, from, (from + 1) % 3)
}

/// Keys of locks on a node, without the companions' mark.
async fn keys_at(redis: &RedisCluster, node: usize) -> Vec<String> {
    let keys = redis.node(node).keys().await.unwrap();
    keys.iter().map(|key| String::from_utf8_lossy(key).into_owned()).collect()
}

/// A migration that stands still four times, each time for longer than a TTL: begun, with a part of
/// the keys moved, with more of them, and with all of them.
#[tokio::test]
async fn all_kinds_and_their_waiters_outlive_a_half_moved_slot() {
    let slot = RedisCluster::slot_of(b"{t}");
    let (redis, one, from, to) = moving(slot).await;
    let two = driver(&format!("{}?layout=native", redis.url())).await;
    let ttl = Duration::from_secs(8);
    let mut held = vec![
        acquire(&one, "{t}alone", ttl).await.unwrap(),
        acquire_as(Kind::Shared, &one, "{t}shared", ttl).await.unwrap(),
        acquire_as(Kind::Shared, &two, "{t}shared", ttl).await.unwrap(),
        acquire_as(permits(1, 3), &one, "{t}permit", ttl).await.unwrap(),
        acquire_as(permits(2, 3), &two, "{t}permit", ttl).await.unwrap(),
        campaign(&one, "{t}leader", b"first", ttl).await,
    ];
    let names = ["{t}alone", "{t}shared", "{t}permit", "{t}leader"];
    let mut waiters = Vec::new();
    for (lock, first) in names.into_iter().zip([1, 2, 2, 1]) {
        for place in 0..2 {
            waiters.push(Waiter::start(&two, lock, ttl));
            let places = first + 1 + place;
            until(async || two.inspect(&name(lock)).await.unwrap().len() == places).await;
        }
    }
    redis.begin_migration(slot, to).await.unwrap();
    let mut split = 0;
    for moved in ["none", "every second one", "every second one of the rest", "all"] {
        let step = match moved {
            "none" => usize::MAX,
            "all" => 1,
            _ => 2,
        };
        let keys = redis.node(from).keys().await.unwrap().into_iter();
        let keys: BTreeSet<_> = keys.filter(|key| RedisCluster::slot_of(key) == slot).collect();
        for key in keys.iter().skip(step - 1).step_by(step) {
            redis.move_this_key(key, from, to).await.unwrap();
        }
        let (here, there) = (keys_at(&redis, from).await, keys_at(&redis, to).await);
        let of = |keys: &[String], lock: &str| keys.iter().any(|key| key.contains(lock));
        split += names.iter().filter(|lock| of(&here, lock) && of(&there, lock)).count();
        tokio::time::sleep(ttl * 4 / 3).await;
        let now = Clock::Boot.now();
        for (number, lease) in held.iter().enumerate() {
            assert_eq!(lease.validity().loss(), None, "{number}, {moved} of the keys moved");
            assert!(lease.validity().until() > now, "{number}, {moved} of the keys moved");
        }
        assert!(
            waiters.iter().all(|waiter| !waiter.task.is_finished()),
            "{moved} of the keys moved"
        );
    }
    assert!(split > 3, "names with keys at both nodes: {split}");
    while redis.move_key(slot, from, to).await.unwrap() {}
    redis.end_migration(slot, from, to).await.unwrap();
    for lease in &held {
        lease.renew().await.unwrap();
    }
    let mut observed = observe(&one, "{t}leader").await;
    assert_eq!(next_value(&mut observed).await.as_deref(), Some("first"));
    // In the order of their places, as if nothing had moved.
    let newest = held.iter().map(|lease| lease.token()).max().unwrap();
    for lease in held.drain(..) {
        lease.release().await.unwrap();
    }
    for pair in waiters.chunks_exact_mut(2) {
        let [first, second] = pair else { panic!() };
        let lease = within(&mut first.task).await.unwrap().unwrap();
        assert!(lease.token() > newest);
        assert!(!second.task.is_finished());
        let token = lease.token();
        lease.release().await.unwrap();
        let lease = within(&mut second.task).await.unwrap().unwrap();
        assert!(lease.token() > token);
        lease.release().await.unwrap();
    }
    assert_eq!(one.names("{t}").await.unwrap(), Vec::<LockName>::new());
}

/// What needs several keys of a name waits for the end of a migration, and says so after a TTL.
#[tokio::test]
async fn a_half_moved_slot_grants_and_frees_nothing_and_that_is_told() {
    let slot = RedisCluster::slot_of(b"{t}");
    let (redis, one, from, to) = moving(slot).await;
    let ttl = Duration::from_secs(1);
    let freed = acquire_as(Kind::Shared, &one, "{t}freed", ttl).await.unwrap();
    let dead = Waiter::start(&one, "{t}freed", ttl);
    until(async || one.inspect(&name("{t}freed")).await.unwrap().len() == 2).await;
    redis.begin_migration(slot, to).await.unwrap();
    assert!(redis.move_key(slot, from, to).await.unwrap());
    let patient = Waiter::start(&one, "{t}new", TTL * 4);
    for refused in [
        acquire(&one, "{t}free", ttl).await.map(drop),
        freed.release().await,
        one.inspect(&name("{t}free")).await.map(drop),
    ] {
        let refused = refused.unwrap_err();
        assert!(matches!(refused, Error::Unavailable { .. }), "{refused:?}");
        let said = refused.to_string();
        assert!(said.contains("slot is being moved"), "{said}");
    }
    assert!(!patient.task.is_finished(), "its keys could be at either node");
    while redis.move_key(slot, from, to).await.unwrap() {}
    redis.end_migration(slot, from, to).await.unwrap();
    // The lock that could not be given back has ended by itself.
    for waiter in [patient, dead] {
        waiter.granted().await.release().await.unwrap();
    }
    acquire(&one, "{t}free", ttl).await.unwrap().release().await.unwrap();
    assert_eq!(one.names("{t}").await.unwrap(), Vec::<LockName>::new());
}

/// A node without slots gets its first one.
#[tokio::test]
async fn a_slot_moves_to_a_new_node_and_nothing_is_lost() {
    let redis = RedisCluster::builder().appendonly(false).start().await.unwrap();
    let (slot, to) = (RedisCluster::slot_of(b"{t}"), 5);
    let from = redis.owner(slot).await.unwrap();
    // It forgets its primary and all others.
    redis.node(to).command(&[b"CLUSTER", b"RESET", b"SOFT"]).await.unwrap();
    let seen = redis.node(0).command(&[b"CLUSTER", b"NODES"]).await.unwrap();
    let me = seen.lines().find(|line| line.contains("myself")).unwrap();
    let (port, bus) = me.split_once(':').unwrap().1.split_once('@').unwrap();
    let bus = bus.split([' ', ',']).next().unwrap();
    let meet = [&b"CLUSTER"[..], b"MEET", b"127.0.0.1", port.as_bytes(), bus.as_bytes()];
    redis.node(to).command(&meet).await.unwrap();
    until(async || {
        let nodes = redis.node(to).command(&[b"CLUSTER", b"NODES"]).await.unwrap();
        let info = redis.node(to).command(&[b"CLUSTER", b"INFO"]).await.unwrap();
        nodes.lines().filter(|node| node.contains(" connected")).count() == 6
            && info.contains("cluster_state:ok")
    })
    .await;
    let one = driver(&format!("{}?layout=native", redis.url())).await;
    let ttl = Duration::from_secs(9);
    let held = [
        acquire(&one, "{t}alone", ttl).await.unwrap(),
        acquire_as(Kind::Shared, &one, "{t}shared", ttl).await.unwrap(),
    ];
    redis.begin_migration(slot, to).await.unwrap();
    while redis.move_key(slot, from, to).await.unwrap() {}
    tokio::time::sleep(ttl * 4 / 3).await;
    for lease in &held {
        assert_eq!(lease.validity().loss(), None);
        assert!(lease.validity().until() > Clock::Boot.now());
    }
    redis.end_migration(slot, from, to).await.unwrap();
    for lease in held {
        lease.renew().await.unwrap();
        lease.release().await.unwrap();
    }
}
