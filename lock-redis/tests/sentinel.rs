//! Locks on the primary that sentinels name.

use std::{sync::Arc, time::Duration};

use futures_util::future::join_all;
use lock_core::{
    Clock, DistributedLock, Effect, Error, Guarantees, Kind, Lease, LossReason, Overlap,
    Requirement, Term,
};
use lock_lab::{Proxy, Redis, RedisSentinels};
use lock_redis::RedisLock;

use crate::lab::{self, fenced::Fenced, switch::switch, *};

/// Sentinels that have stood still for 2 s do nothing for 30 s.
const TTL: Duration = Duration::from_secs(45);

async fn deployment() -> RedisSentinels {
    RedisSentinels::builder().in_memory().start().await.unwrap()
}

fn url(redis: &RedisSentinels, options: &str) -> String {
    format!("{}?{options}", redis.url())
}

async fn client(redis: &RedisSentinels, options: &str) -> Arc<RedisLock> {
    driver(&url(redis, options)).await
}

async fn acquired(client: &RedisLock, lock: &str) -> Box<dyn Lease> {
    acquired_for(client, lock, TTL).await
}

/// Waits until an acquire succeeds, through errors of a failover.
async fn acquired_for(client: &RedisLock, lock: &str, ttl: Duration) -> Box<dyn Lease> {
    within(async {
        loop {
            match client.acquire(request(lock, ttl), lock_core::Attempt::new()).await {
                Ok(lease) => return lease,
                Err(Error::Unavailable { .. } | Error::PlaceLost { .. }) => {}
                Err(error) => panic!("{error:?}"),
            }
        }
    })
    .await
}

/// None are counted while a sentinel ends the connections of a server whose role it changes.
async fn calls(server: &Redis) -> u64 {
    server.counters().await.map_or(0, |counters| counters.get("cmd.evalsha"))
}

/// Cuts replication, so that the next writes are lost, and kills the primary later.
async fn pause_all(redis: &RedisSentinels, primary: usize) {
    for replica in redis.replicas_of(primary) {
        redis.pause_replication(replica).await.unwrap();
    }
}

#[tokio::test]
async fn an_acquisition_costs_as_many_requests_as_on_one_server() {
    let redis = deployments::sentinels().await;
    let client = client(&redis, "").await;
    acquire(&client, "orders", TTL).await.unwrap().release().await.unwrap();
    let primary = redis.node(0);
    let before = primary.counters().await.unwrap();
    for _ in 0..50 {
        acquire(&client, "orders", TTL).await.unwrap().release().await.unwrap();
    }
    let after = primary.counters().await.unwrap();
    assert_eq!(after.get("cmd.evalsha") - before.get("cmd.evalsha"), 100);
    for other in ["role", "wait", "hello", "client|info", "config|get"] {
        let command = format!("cmd.{other}");
        assert_eq!(after.get(&command), before.get(&command), "{other}");
    }
}

#[tokio::test]
async fn a_failover_keeps_what_is_replicated_and_serves_the_waiters() {
    let redis = deployment().await;
    let (one, two) = (client(&redis, "").await, client(&redis, "").await);
    let held = acquire(&one, "orders", TTL).await.unwrap();
    let waiter = Waiter::queued(&two, redis.node(0), "orders", TTL).await;
    assert_eq!(redis.node(0).command(&[b"WAIT", b"2", b"5000"]).await.unwrap(), "2");
    redis.node(0).kill();
    let new = redis.primary_after(0).await.unwrap();
    // The hold is confirmed there before it would end.
    until(async || calls(redis.node(new)).await >= 2).await;
    within(held.renew()).await.unwrap();
    assert_eq!(held.validity().loss(), None);
    held.release().await.unwrap();
    let next = waiter.granted().await;
    assert!(next.token() > held.token());
    next.release().await.unwrap();
}

#[tokio::test]
async fn a_lock_that_the_new_primary_does_not_know_is_lost_and_fenced_off() {
    let redis = deployment().await;
    let (one, two) = (client(&redis, "").await, client(&redis, "").await);
    let kept = acquire(&one, "kept", TTL).await.unwrap();
    assert_eq!(redis.node(0).command(&[b"WAIT", b"2", b"5000"]).await.unwrap(), "2");
    pause_all(&redis, 0).await;
    let (lost, before) = (acquire(&one, "orders", TTL).await.unwrap(), one.clock().now());
    let mut resource = Fenced::default();
    assert!(resource.write(&*lost));
    redis.node(0).kill();
    redis.primary_after(0).await.unwrap();
    assert_eq!(within(lost.validity().lost()).await, LossReason::Failover);
    // It does not take its TTL.
    assert!(one.clock().now().since(before) < TTL);
    let next = acquired(&two, "orders").await;
    assert!(next.token() > lost.token(), "{:?} {:?}", next.token(), lost.token());
    assert!(resource.write(&*next));
    assert!(!resource.write(&*lost));
    assert_eq!(kept.validity().loss(), None);
    within(kept.renew()).await.unwrap();
    kept.release().await.unwrap();
    next.release().await.unwrap();
}

/// A fixed term is renewed before it is given out, and that request does not reach the old primary.
#[tokio::test]
async fn a_waiter_whose_grant_a_failover_lost_keeps_its_place() {
    let (old, new) = (lab::server().await, lab::server().await);
    follow(&new, &format!("REPLICAOF 127.0.0.1 {}", old.addr().port())).await;
    let (addr, target) = switch(old.addr()).await;
    let proxy = Proxy::start(addr).await.unwrap();
    let (near, far) = (driver(&old.url()).await, driver(&old.url_via(&proxy)).await);
    let held = acquire(&near, "orders", TTL).await.unwrap();
    let mut request = request("orders", TTL);
    request.term = Term::Fixed;
    let waiter = Waiter::ask(&far, request);
    until(async || queue_length(&old, "orders").await == 1).await;
    until(async || queue_length(&new, "orders").await == 1).await;
    follow(&new, "REPLICAOF NO ONE").await;
    proxy.catch(b"EVALSHA");
    held.release().await.unwrap();
    until(async || proxy.caught() == 1).await;
    *target.lock().unwrap() = new.addr();
    old.kill();
    // The new primary knows the earlier holder. It is asked about the waiter.
    until(async || calls(&new).await >= 1).await;
    until(async || far.inspect(&name("orders")).await.is_ok()).await;
    assert_eq!(queue_length(&new, "orders").await, 1);
    assert!(!waiter.task.is_finished());
    let other = driver(&new.url()).await;
    let holder = other.inspect(&name("orders")).await.unwrap()[0].attempt.unwrap();
    assert!(other.revoke(&name("orders"), holder).await.unwrap());
    let lease = waiter.granted().await;
    assert!(lease.token() > held.token());
    lease.release().await.unwrap();
    nothing_is_left(&new).await;
}

/// The new primary has a waiter that has left, and grants it the lock.
#[tokio::test]
async fn a_waiter_whose_withdrawal_a_failover_lost_blocks_nobody() {
    let redis = deployment().await;
    let (one, two) = (client(&redis, "").await, client(&redis, "").await);
    let held = acquire(&one, "orders", TTL * 20).await.unwrap();
    let waiter = Waiter::queued(&two, redis.node(0), "orders", TTL * 20).await;
    assert_eq!(redis.node(0).command(&[b"WAIT", b"2", b"5000"]).await.unwrap(), "2");
    pause_all(&redis, 0).await;
    waiter.attempt.cancel();
    assert!(is_contended(&waiter.ended().await));
    redis.node(0).kill();
    let new = redis.primary_after(0).await.unwrap();
    assert_eq!(queue_length(redis.node(new), "orders").await, 1, "the withdrawal is lost");
    until(async || two.inspect(&name("orders")).await.is_ok()).await;
    until(async || held.renew().await.is_ok()).await;
    held.release().await.unwrap();
    nothing_is_left(redis.node(new)).await;
}

async fn follow(node: &Redis, words: &str) {
    let words: Vec<_> = words.split(' ').map(str::as_bytes).collect();
    assert_eq!(node.command(&words).await.unwrap(), "OK");
}

/// A primary has another replication id once its first replica has come.
#[tokio::test]
async fn a_replica_that_came_after_the_client_takes_over() {
    let (old, new) = (lab::server().await, lab::server().await);
    let (addr, target) = switch(old.addr()).await;
    let client = driver(&format!("redis://{addr}")).await;
    follow(&new, &format!("REPLICAOF 127.0.0.1 {}", old.addr().port())).await;
    let kept = acquire(&client, "kept", TTL).await.unwrap();
    until(async || new.command(&[b"EXISTS", b"kept"]).await.unwrap() == "1").await;
    follow(&new, "REPLICAOF NO ONE").await;
    let lost = acquire(&client, "late", TTL).await.unwrap();
    *target.lock().unwrap() = new.addr();
    old.kill();
    assert_eq!(within(lost.validity().lost()).await, LossReason::Failover);
    within(kept.renew()).await.unwrap();
    kept.release().await.unwrap();
}

/// A fixed term is checked, not prolonged. A failover behind one address is seen by the
/// replication id.
#[tokio::test]
async fn a_fixed_term_and_readers_survive_a_failover_behind_one_address() {
    let (old, new) = (lab::server().await, lab::server().await);
    follow(&new, &format!("REPLICAOF 127.0.0.1 {}", old.addr().port())).await;
    let (addr, target) = switch(old.addr()).await;
    let client = driver(&format!("redis://{addr}")).await;
    let term = acquire_fixed(&client, "term", TTL).await.unwrap();
    let reader = acquire_as(Kind::Shared, &client, "shared", TTL).await.unwrap();
    let end = term.validity().until();
    until(async || old.command(&[b"WAIT", b"1", b"100"]).await.unwrap() == "1").await;
    until(async || new.command(&[b"EXISTS", b"term"]).await.unwrap() == "1").await;
    let lost = {
        follow(&new, "REPLICAOF NO ONE").await;
        acquire(&client, "late", TTL).await.unwrap()
    };
    *target.lock().unwrap() = new.addr();
    old.kill();
    assert_eq!(within(lost.validity().lost()).await, LossReason::Failover);
    until(async || new.counters().await.unwrap().get("cmd.evalsha") >= 1).await;
    within(reader.renew()).await.unwrap();
    assert_eq!((term.validity().loss(), reader.validity().loss()), (None, None));
    assert_eq!(term.validity().until(), end);
    reader.release().await.unwrap();
    term.release().await.unwrap();
}

#[tokio::test]
async fn a_lock_is_never_granted_that_some_replicas_lack() {
    let redis = deployments::sentinels().await;
    let client = client(&redis, "wait_replicas=2").await;
    let promises = client.guarantees();
    // What replicas lack is not granted. But without the dead node, no renewal counts.
    assert!(!promises.meets(Requirement::SurvivesFailover), "{promises:?}");
    assert!(!promises.overlaps.contains(&Overlap::Failover));
    let held = acquire(&client, "held", TTL).await.unwrap();
    redis.pause_replication(1).await.unwrap();
    let refused = acquire(&client, "orders", TTL).await.unwrap_err();
    let text = refused.to_string();
    assert!(text.contains("1 of 2 replicas"), "{text}");
    assert!(matches!(refused, Error::Unavailable { effect: Effect::None, .. }), "{refused:?}");
    let key = async |node: usize| redis.node(node).command(&[b"EXISTS", b"orders"]).await.unwrap();
    assert_eq!(key(0).await, "0");
    // A renewal that a replica lacks does not count either.
    let until = held.validity().until();
    let short = within(held.renew()).await.unwrap_err();
    assert!(short.to_string().contains("1 of 2 replicas"), "{short}");
    assert_eq!(held.validity().until(), until);
    redis.resume_replication(1).await.unwrap();
    redis.await_replicas().await.unwrap();
    within(held.renew()).await.unwrap();
    let lease = acquired(&client, "orders").await;
    for node in [1, 2] {
        assert_eq!(key(node).await, "1");
    }
    lease.release().await.unwrap();
    held.release().await.unwrap();
}

#[tokio::test]
async fn a_hand_over_counts_when_the_replicas_have_it() {
    let redis = deployments::sentinels().await;
    let (one, two) =
        (client(&redis, "wait_replicas=2").await, client(&redis, "wait_replicas=2").await);
    let held = acquire(&one, "orders", TTL).await.unwrap();
    let waiter = Waiter::queued(&two, redis.node(0), "orders", TTL).await;
    pause_all(&redis, 0).await;
    held.release().await.unwrap();
    let refused = waiter.ended().await.unwrap_err();
    assert!(refused.to_string().contains("0 of 2 replicas"), "{refused}");
    until(async || redis.node(0).command(&[b"EXISTS", b"orders"]).await.unwrap() == "0").await;
    for replica in [1, 2] {
        redis.resume_replication(replica).await.unwrap();
    }
    redis.await_replicas().await.unwrap();
    let held = acquired(&one, "orders").await;
    let waiter = Waiter::queued(&two, redis.node(0), "orders", TTL).await;
    held.release().await.unwrap();
    waiter.granted().await.release().await.unwrap();
}

fn says_what_remains(promises: &Guarantees) {
    assert!(promises.overlaps.contains(&Overlap::Failover), "{promises:?}");
    assert!(!promises.meets(Requirement::SurvivesFailover));
    let said = promises.cautions.iter().any(|why| why.contains("wait_replicas is 1 of 2"));
    assert!(said, "{:?}", promises.cautions);
}

#[tokio::test]
async fn fewer_replicas_than_all_may_lose_a_lock_as_the_guarantees_say() {
    let redis = deployment().await;
    let one = client(&redis, "wait_replicas=1").await;
    says_what_remains(one.guarantees());
    redis.pause_replication(2).await.unwrap();
    // Node 1 has it, and node 2 is promoted: node 1 does not live either.
    let lost = acquire(&one, "orders", TTL).await.unwrap();
    let two = client(&redis, "").await;
    redis.node(1).kill();
    redis.node(0).kill();
    assert_eq!(redis.primary_after(0).await.unwrap(), 2);
    assert_eq!(within(lost.validity().lost()).await, LossReason::Failover);
    let next = acquired(&two, "orders").await;
    assert!(next.token() > lost.token());
    next.release().await.unwrap();
}

#[tokio::test]
async fn a_restarted_old_primary_is_left() {
    let redis = deployment().await;
    let client = client(&redis, "").await;
    redis.node(0).stop();
    let new = redis.primary_after(0).await.unwrap();
    let lease = acquired(&client, "orders").await;
    redis.node(0).resume();
    redis.await_replicas().await.unwrap();
    within(lease.renew()).await.unwrap();
    assert_eq!(redis.node(new).command(&[b"EXISTS", b"orders"]).await.unwrap(), "1");
    lease.release().await.unwrap();
}

/// The sentinel that answers first names a dead primary: it hears of no failover, since it is alone.
/// The others are slower.
#[tokio::test]
async fn a_sentinel_that_has_missed_the_failover_is_not_the_last_word() {
    let (redis, cut_off) = tokio::join!(deployment(), deployment());
    cut_off.sentinel(1).kill();
    cut_off.sentinel(2).kill();
    cut_off.node(0).kill();
    redis.node(0).kill();
    redis.primary_after(0).await.unwrap();
    let behind = cut_off.sentinel_addrs()[0];
    let slow = Proxy::start(redis.sentinel_addrs()[0]).await.unwrap();
    slow.delay(Duration::from_millis(100));
    let url = format!("redis+sentinel://{behind},{}/lab", slow.addr());
    let lease = acquire(&*driver(&url).await, "orders", TTL).await.unwrap();
    lease.release().await.unwrap();
    // With no other sentinel to ask, the refusal is told.
    let refused = try_driver(&format!("redis+sentinel://{behind}/lab")).await.unwrap_err();
    assert!(matches!(refused, Error::Unavailable { .. }), "{refused:?}");
}

/// The sentinels that know of the failover are out of reach, and so is the new primary. Another
/// one names the primary from before, which takes writes: it is cut off with it.
#[tokio::test]
async fn no_answer_from_before_a_known_failover_is_believed() {
    let (redis, cut_off) = tokio::join!(deployment(), deployment());
    redis.node(0).kill();
    let new = redis.primary_after(0).await.unwrap();
    let known = Proxy::start(redis.sentinel_addrs()[0]).await.unwrap();
    let behind = cut_off.sentinel_addrs()[0];
    let client = driver(&format!("redis+sentinel://{},{behind}/lab", known.addr())).await;
    acquire(&client, "orders", TTL).await.unwrap().release().await.unwrap();
    known.refuse();
    redis.node(new).kill();
    until(async || {
        let refused = acquire(&client, "orders", Duration::from_secs(1)).await.unwrap_err();
        assert!(matches!(refused, Error::Unavailable { .. }), "{refused:?}");
        refused.to_string().contains("knows of failover")
    })
    .await;
    nothing_is_left(cut_off.node(0)).await;
    assert_eq!(calls(cut_off.node(0)).await, 0);
}

#[tokio::test]
async fn a_wrong_service_and_dead_sentinels_are_named_in_time() {
    let redis = deployments::sentinels().await;
    let addrs = redis.sentinel_addrs();
    let wrong = format!("redis+sentinel://{}/nobody", addrs[0]);
    let refused = within(try_driver(&wrong)).await.unwrap_err().to_string();
    assert!(refused.contains("knows no service \"nobody\""), "{refused}");
    let one_lives = format!("redis+sentinel://127.0.0.1:1,{}/lab", addrs[1]);
    acquire(&*driver(&one_lives).await, "orders", TTL).await.unwrap().release().await.unwrap();
    let none_lives = "redis+sentinel://127.0.0.1:1,127.0.0.1:2/lab";
    let refused = within(try_driver(none_lives)).await.unwrap_err();
    assert!(matches!(refused, Error::Unavailable { .. }), "{refused:?}");
    assert!(refused.to_string().contains("the sentinel 127.0.0.1:"), "{refused}");
}

/// An address may lead to another server while a connection to the first one is in use.
#[tokio::test]
async fn a_request_and_its_release_go_to_one_server() {
    let (old, new) = (deployments::sentinels().await, deployments::sentinels().await);
    let (addr, target) = switch(old.node(0).addr()).await;
    let client = driver(&format!("redis://{addr}?wait_replicas=1")).await;
    *target.lock().unwrap() = new.node(0).addr();
    // Longer than the test waits: what is left at one of them does not end in time.
    let held = acquired_for(&client, "orders", PATIENCE * 3).await;
    held.release().await.unwrap();
    for server in [old.node(0), new.node(0)] {
        nothing_is_left(server).await;
    }
}

/// The rights that docs/stores/redis.md names are enough at the sentinels.
#[tokio::test]
async fn a_user_of_the_sentinels_with_few_rights_hears_of_a_failover() {
    let redis = deployment().await;
    let rights = "ACL SETUSER watcher on >secret &+odown &-odown &+promoted-slave &+switch-master \
                  -@all +sentinel|master +sentinel|get-master-addr-by-name +subscribe +ping";
    let page = include_str!("../../docs/stores/redis.md").replace("SECRET", "secret");
    assert!(page.contains(rights));
    for sentinel in redis.sentinels() {
        let words: Vec<_> = rights.split(' ').map(str::as_bytes).collect();
        sentinel.command(&words).await.unwrap();
    }
    let file = tempfile::NamedTempFile::new().unwrap();
    std::fs::write(file.path(), "secret").unwrap();
    let login = format!("sentinel_user=watcher&sentinel_password_file={}", file.path().display());
    let client = client(&redis, &login).await;
    for sentinel in redis.sentinels() {
        until(async || {
            let list = sentinel.command(&[b"CLIENT", b"LIST", b"TYPE", b"pubsub"]).await.unwrap();
            list.contains("user=watcher") && list.contains("sub=4")
        })
        .await;
    }
    let held = acquire(&client, "orders", TTL).await.unwrap();
    assert_eq!(redis.node(0).command(&[b"WAIT", b"2", b"5000"]).await.unwrap(), "2");
    redis.node(0).kill();
    redis.primary_after(0).await.unwrap();
    within(held.renew()).await.unwrap();
    held.release().await.unwrap();
}

/// A server (`timeout`) or a balancer ends what is idle. Each renewal met the next dead connection.
#[tokio::test]
async fn connections_for_replicas_that_have_ended_idle_end_no_lock() {
    let redis = deployments::sentinels().await;
    let client = client(&redis, "wait_replicas=2").await;
    let (ttl, node) = (Duration::from_secs(9), redis.node(0));
    let names: Vec<_> = (0..16).map(|i| format!("n{i}")).collect();
    let held = join_all(names.iter().map(|name| acquire(&client, name, ttl))).await;
    let held: Vec<_> = held.into_iter().map(Result::unwrap).collect();
    let list = node.command(&[b"CLIENT", b"LIST", b"TYPE", b"normal"]).await.unwrap();
    let waited = list.lines().filter(|line| line.contains(" cmd=wait "));
    let ids: Vec<_> =
        waited.filter_map(|line| line.split(' ').next()?.strip_prefix("id=")).collect();
    assert_eq!(ids.len(), 2, "{list}");
    for id in ids {
        node.command(&[b"CLIENT", b"KILL", b"ID", id.as_bytes()]).await.unwrap();
    }
    let ends: Vec<_> = held.iter().map(|lease| lease.validity().until()).collect();
    until(async || {
        let renewed = held.iter().zip(&ends).all(|(lease, end)| lease.validity().until() > *end);
        assert!(renewed || ends.iter().all(|end| Clock::Boot.now() < *end), "not renewed in time");
        renewed
    })
    .await;
    for lease in held {
        lease.release().await.unwrap();
    }
}
