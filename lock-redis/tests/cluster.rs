//! Locks on a Redis Cluster: all kinds, in all slots, for a fair price.

use std::{collections::BTreeSet, time::Duration};

use lock_core::{Attempt, DistributedLock, Effect, Error, FencingToken, Kind, Overlap};
use lock_lab::{Redis, RedisCluster, RedisClusterBuilder};

use crate::lab::{deployments::cluster, *};

const TTL: Duration = Duration::from_secs(60);

/// Some names that are kept by each of the primaries.
fn names() -> Vec<String> {
    (0..12).map(|number| format!("orders/{number}")).collect()
}

async fn calls(redis: &RedisCluster, command: &str) -> u64 {
    let mut calls = 0;
    for node in redis.nodes() {
        calls += node.counters().await.unwrap().get(&format!("cmd.{command}"));
    }
    calls
}

#[tokio::test]
async fn every_kind_works_in_every_slot_and_leaves_nothing() {
    let redis = cluster().await;
    let url = format!("{}?layout=native", redis.url());
    let (one, two) = (driver(&url).await, driver(&url).await);
    let braces = ["{u1}.lock", "a}b", "{}x", "}{", "{a}{b}", "x{"].map(str::to_owned);
    let kinds = [Kind::Exclusive, Kind::Shared, permits(1, 2)];
    for lock in names().into_iter().chain(braces) {
        for kind in kinds {
            let first = acquire_as(kind, &one, &lock, TTL).await.unwrap();
            let waiter = Waiter::start(&two, &lock, TTL);
            until(async || two.inspect(&name(&lock)).await.unwrap().len() == 2).await;
            first.renew().await.unwrap();
            first.release().await.unwrap();
            let second = waiter.granted().await;
            assert!(second.token() > first.token(), "{lock}");
            second.release().await.unwrap();
        }
    }
    let kept = |key: &&Vec<u8>| !key.ends_with(b"\xFFfence") && !key.starts_with(b"{distlock}");
    assert_eq!(redis.keys().await.unwrap().iter().filter(kept).count(), 0);
    // A plain name keeps the key of a single server, for foreign clients.
    let lease = acquire(&one, "plain", TTL).await.unwrap();
    assert_eq!(lease.key_of(), b"plain");
}

trait KeyOf {
    fn key_of(&self) -> Vec<u8>;
}

impl KeyOf for Box<dyn lock_core::Lease> {
    fn key_of(&self) -> Vec<u8> {
        let lease: &dyn std::any::Any = &**self;
        lease.downcast_ref::<lock_redis::RedisLease>().map(|l| l.key().to_vec()).unwrap_or_default()
    }
}

#[tokio::test]
async fn elections_sets_and_operators_see_all_primaries() {
    let redis = cluster().await;
    let url = format!("{}?layout=native", redis.url());
    let (one, two) = (driver(&url).await, driver(&url).await);
    // Elections.
    for lock in names() {
        let mut observed = two.observe(&name(&lock)).await.unwrap();
        assert!(within(observed.recv()).await.unwrap().is_ok_and(|leader| leader.is_none()));
        let mut candidate = request(&lock, TTL);
        candidate.value = Some(b"first".to_vec().into());
        let leader = within(one.acquire(candidate, Attempt::new())).await.unwrap();
        leader.publish(b"second").await.unwrap();
        // The first value may be left out.
        let mut seen = within(observed.recv()).await.unwrap().unwrap().unwrap();
        if seen.value == b"first" {
            seen = within(observed.recv()).await.unwrap().unwrap().unwrap();
        }
        assert_eq!((seen.value.as_slice(), seen.token), (&b"second"[..], leader.token()));
        leader.release().await.unwrap();
        assert!(within(observed.recv()).await.unwrap().is_ok_and(|leader| leader.is_none()));
    }
    // Sets: in one step within a slot, else one after the other.
    let wish = |lock: &str| (request(lock, TTL), Attempt::new());
    let set = one.try_all(vec![wish("{u}a"), wish("{u}b")]).await.unwrap().unwrap();
    assert!(two.try_all(vec![wish("{u}b"), wish("{u}c")]).await.unwrap().is_none());
    for lease in set {
        lease.release().await.unwrap();
    }
    let apart = one.try_all(names().iter().map(|lock| wish(lock)).collect()).await;
    assert!(matches!(apart, Err(Error::Unsupported { .. })), "{apart:?}");
    let locks = locks(&url).await;
    let all = locks.all(names()).unwrap().acquire().await.unwrap();
    assert!(matches!(locks.all(names()).unwrap().try_acquire().await, Ok(None)));
    // Operators.
    let listed: BTreeSet<_> = one.names("orders/").await.unwrap().into_iter().collect();
    assert_eq!(listed, names().iter().map(|lock| name(lock)).collect());
    let entry = &two.inspect(&name("orders/3")).await.unwrap()[0];
    assert!(
        entry.holder.description.as_deref().is_some_and(|who| who.contains("pid")),
        "{entry:?}"
    );
    assert!(two.revoke(&name("orders/3"), entry.attempt.unwrap()).await.unwrap());
    assert!(acquire(&two, "orders/3", TTL).await.is_ok());
    drop(all);
}

#[tokio::test]
async fn a_set_within_a_slot_is_one_request() {
    let redis = cluster().await;
    let locks = locks(&format!("{}?layout=native", redis.url())).await;
    let set = locks.all((0..10).map(|number| format!("{{u}}{number}"))).unwrap().ttl(TTL);
    // The scripts go to the node once.
    set.acquire().await.unwrap().release().await.unwrap();
    for turn in 0..5 {
        let evals = calls(&redis, "evalsha").await + calls(&redis, "eval").await;
        let held = set.acquire().await.unwrap();
        let spent = calls(&redis, "evalsha").await + calls(&redis, "eval").await - evals;
        assert_eq!((held.tokens().count(), spent), (10, 1), "turn {turn}");
        held.release().await.unwrap();
    }
}

#[tokio::test]
async fn a_set_across_slots_goes_in_the_order_of_the_names() {
    let redis = cluster().await;
    let url = format!("{}?layout=native", redis.url());
    let (one, two) = (locks(&url).await, driver(&url).await);
    let ordered = ["a", "b", "c", "d"];
    let slots: BTreeSet<_> =
        ordered.iter().map(|lock| RedisCluster::slot_of(lock.as_bytes())).collect();
    assert_eq!(slots.len(), ordered.len());
    let busy = acquire(&two, "c", TTL).await.unwrap();
    let set = one.all(["d", "c", "a", "b"]).unwrap().ttl(TTL);
    let waiting = tokio::spawn(set.acquire());
    until(async || two.inspect(&name("c")).await.unwrap().len() == 2).await;
    for (lock, holders) in [("a", 1), ("b", 1), ("c", 1), ("d", 0)] {
        let queue = two.inspect(&name(lock)).await.unwrap();
        assert_eq!(queue.iter().filter(|entry| entry.holds).count(), holders, "{lock}");
    }
    busy.release().await.unwrap();
    let held = within(waiting).await.unwrap().unwrap();
    let names: Vec<_> = held.tokens().map(|(name, _)| name.as_str().to_owned()).collect();
    assert_eq!(names, ordered);
    held.release().await.unwrap();
}

/// One more than the single server would need: the redirection that nobody needs is not there.
#[tokio::test]
async fn a_lock_costs_two_requests_and_idle_time_one_round_per_slot() {
    let redis = cluster().await;
    let one = driver(&format!("{}?layout=native", redis.url())).await;
    warm(&one).await;
    let evals = calls(&redis, "evalsha").await;
    for turn in 0..100 {
        let lease = acquire(&one, &format!("orders/{turn}"), TTL).await.unwrap();
        lease.release().await.unwrap();
    }
    let spent = calls(&redis, "evalsha").await - evals;
    assert!((200..=210).contains(&spent), "{spent} requests for 100 locks");
    // Ten locks in two slots.
    let ttl = Duration::from_secs(6);
    let mut held = Vec::new();
    for turn in 0..10 {
        held.push(acquire(&one, &format!("{{{}}}{turn}", turn % 2), ttl).await.unwrap());
    }
    let (evals, asked) = (calls(&redis, "evalsha").await, calls(&redis, "cluster|slots").await);
    tokio::time::sleep(ttl).await;
    let rounds = calls(&redis, "evalsha").await - evals;
    assert!((2..=8).contains(&rounds), "{rounds} requests in three rounds of two slots");
    assert_eq!(calls(&redis, "cluster|slots").await, asked, "an idle client asks for nothing");
    for lease in held {
        assert!(!lease.validity().has_ended());
        lease.release().await.unwrap();
    }
}

#[tokio::test]
async fn what_a_cluster_cannot_do_is_said() {
    let redis = cluster().await;
    let plain = Redis::builder().appendonly(false).start().await.unwrap();
    let error = |result: lock_core::Result<_>| {
        result.map(|_: lock_redis::RedisLock| ()).unwrap_err().to_string()
    };
    let wrong = error(try_driver(&format!("redis://{}", redis.node(0).addr())).await);
    assert!(wrong.contains("redis+cluster://"), "{wrong}");
    let wrong = error(try_driver(&plain.url().replacen("redis", "redis+cluster", 1)).await);
    assert!(wrong.contains("no node of a cluster"), "{wrong}");
    let wrong = error(try_driver(&format!("{}/3", redis.url())).await);
    assert!(wrong.contains("database") && wrong.contains('0'), "{wrong}");
    // A node that is down is no reason to fail.
    let dead = format!("redis+cluster://127.0.0.1:1,{}", redis.node(2).addr());
    let one = driver(&dead).await;
    let floor = one.raise_token_floor(FencingToken::new(7)).await.map(drop).unwrap_err();
    assert!(matches!(floor, Error::Unsupported { .. }), "{floor}");
    let guarantees = one.guarantees();
    assert!(!guarantees.survives.failover && guarantees.overlaps.contains(&Overlap::Restart));
}

/// As behind a proxy: the server does not say that it is one of a cluster. Without `HELLO` only the
/// simple mode works.
#[tokio::test]
async fn keys_of_several_slots_are_refused_with_the_prefix_that_helps() {
    let builder = RedisCluster::builder().replicas(0).appendonly(false);
    let words = ["--rename-command", "HELLO", ""];
    let redis = words.into_iter().fold(builder, RedisClusterBuilder::arg).start().await.unwrap();
    let node = redis.node(redis.owner(RedisCluster::slot_of(b"app")).await.unwrap());
    let simple = format!("{}?mode=simple", node.url());
    let client = driver(&simple).await;
    let refused = acquire(&client, "orders", TTL).await.unwrap_err();
    assert!(matches!(refused, Error::Rejected { effect: Effect::None, .. }), "{refused:?}");
    assert!(refused.to_string().contains("prefix={app}:"), "{refused}");
    let client = driver(&format!("{simple}&prefix={{app}}:")).await;
    acquire(&client, "orders", TTL).await.unwrap().release().await.unwrap();
}

#[tokio::test]
async fn the_documented_rights_are_enough_up_to_the_close() {
    let redis = cluster().await;
    for node in redis.nodes() {
        give_documented_rights(node, " +cluster|slots").await;
    }
    let addrs: Vec<_> = redis.addrs().iter().map(ToString::to_string).collect();
    let url = format!("redis+cluster://few:secret@{}?prefix=app:", addrs.join(","));
    let client = driver(&url).await;
    for lock in names() {
        let held = acquire(&client, &lock, TTL).await.unwrap();
        assert_eq!(client.inspect(&name(&lock)).await.unwrap().len(), 1);
        held.release().await.unwrap();
    }
    let held = acquire(&client, "held", TTL).await.unwrap();
    within(client.close()).await.unwrap();
    assert!(held.validity().has_ended());
    for node in redis.nodes() {
        assert!(!node.keys().await.unwrap().contains(&b"app:held".to_vec()));
        node.command(&[b"ACL", b"DELUSER", b"few"]).await.unwrap();
    }
}
