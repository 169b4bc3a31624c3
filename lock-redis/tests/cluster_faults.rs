//! A cluster with nodes that do not answer.

use std::time::Duration;

use futures_util::{FutureExt, future::join_all};
use lock_core::{Clock, DistributedLock, Kind, Lease};
use lock_lab::{Proxy, RedisCluster};

use crate::lab::{deployments::cluster, undisturbed::undisturbed, *};

/// A name that this node keeps.
async fn name_at(redis: &RedisCluster, node: usize) -> String {
    for number in 0.. {
        let lock = format!("orders{number}");
        if redis.owner(RedisCluster::slot_of(lock.as_bytes())).await.unwrap() == node {
            return lock;
        }
    }
    unreachable!("each node has slots")
}

#[tokio::test]
async fn a_node_that_stands_still_holds_up_no_renewal_at_others() {
    let redis = cluster().await;
    let client = driver(&redis.url()).await;
    let slow = name_at(&redis, 0).await;
    let quick = name_at(&redis, 2).await;
    let ttl = Duration::from_secs(3);
    let is_over = |lease: &dyn Lease| lease.validity().until() <= Clock::Boot.now();
    // A machine that stands still for a third of the TTL holds up a renewal.
    undisturbed(ttl / 3, async || {
        let far = acquire(&client, &slow, ttl * 2).await.unwrap();
        let near = acquire(&client, &quick, ttl).await.unwrap();
        redis.node(0).stop();
        until(async || is_over(&*far)).await;
        let (over, loss) = (is_over(&*near), near.validity().loss());
        redis.node(0).resume();
        let released = near.release().await;
        match (over, loss, &released) {
            (false, None, Ok(())) => Ok(()),
            _ => Err(format!("ended: {over}, lost: {loss:?}, {released:?}")),
        }
    })
    .await;
}

/// What a client says about itself lies at one node, and is for people's eyes.
#[tokio::test]
async fn the_node_of_the_descriptions_decides_neither_a_connect_nor_a_close() {
    let builder = RedisCluster::builder().replicas(0).appendonly(false);
    let redis = builder.node_timeout(Duration::from_secs(600)).start().await.unwrap();
    let ttl = Duration::from_secs(60);
    let slot = RedisCluster::slot_of(b"{distlock}");
    let home = redis.owner(slot).await.unwrap();
    let beside = (home + 1) % 3;
    redis.begin_migration(slot, beside).await.unwrap();
    let client = driver(&redis.url()).await;
    let at_home = acquire(&client, &name_at(&redis, home).await, ttl).await.unwrap();
    let lock = name_at(&redis, beside).await;
    let held = acquire(&client, &lock, ttl).await.unwrap();
    at_home.release().await.unwrap();
    redis.node(home).kill();
    assert_eq!(client.inspect(&name(&lock)).await.unwrap().len(), 1);
    within(client.close()).await.unwrap();
    assert!(held.validity().has_ended());
}

#[tokio::test]
async fn silent_seeds_do_not_keep_a_client_from_the_cluster() {
    let redis = cluster().await;
    let mut seeds = Vec::new();
    let mut silent = Vec::new();
    for node in redis.nodes() {
        let proxy = Proxy::start(node.addr()).await.unwrap();
        proxy.cut();
        seeds.push(proxy.addr().to_string());
        silent.push(proxy);
    }
    seeds.push(redis.node(0).addr().to_string());
    let client = within(try_driver(&format!("redis+cluster://{}", seeds.join(",")))).await.unwrap();
    acquire(&client, "orders", Duration::from_secs(9)).await.unwrap().release().await.unwrap();
}

/// With one connection for each request, a crowd would use up all that the servers have.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn locks_that_replicas_must_have_need_few_connections() {
    const LOCKS: usize = 300;
    let builder = RedisCluster::builder().appendonly(false);
    let redis = builder.node_timeout(Duration::from_secs(60)).start().await.unwrap();
    let client = driver(&format!("{}?wait_replicas=1", redis.url())).await;
    let ttl = Duration::from_secs(12);
    let mut held = Vec::new();
    for number in 0..LOCKS {
        held.push(acquire(&client, &format!("orders/{number}"), ttl).await.unwrap());
    }
    let writer = acquire(&client, "sheet", ttl).await.unwrap();
    let readers: Vec<_> = (0..LOCKS)
        .map(|_| {
            let client = client.clone();
            tokio::spawn(async move { acquire_as(Kind::Shared, &client, "sheet", ttl).await })
        })
        .collect();
    let owner = redis.owner(RedisCluster::slot_of(b"sheet")).await.unwrap();
    until(async || queue_length(redis.node(owner), "sheet").await == LOCKS).await;
    writer.release().await.unwrap();
    for reader in readers {
        held.push(within(reader).await.unwrap().unwrap());
    }
    let ends: Vec<_> = held.iter().map(|lease| lease.validity().until()).collect();
    let renewed = || held.iter().zip(&ends).all(|(lease, end)| lease.validity().until() > *end);
    until(async || renewed()).await;
    for node in redis.nodes() {
        let clients = node.command(&[b"CLIENT", b"LIST", b"TYPE", b"normal"]).await.unwrap();
        assert!(clients.lines().count() < 25, "{}", clients.lines().count());
    }
    for lease in held {
        lease.release().await.unwrap();
    }
}

/// While the releases at one node wait for it, the others' are sent.
#[tokio::test]
async fn a_node_that_stands_still_holds_up_no_release_at_others() {
    // More than are sent one by one, so the rest go together.
    const READERS: usize = 100;
    let redis = cluster().await;
    let client = driver(&redis.url()).await;
    let slow = name_at(&redis, 0).await;
    let quick = name_at(&redis, 2).await;
    // The locks last for longer than the test waits.
    let ttl = PATIENCE * 3;
    let readers = (0..READERS).map(|_| acquire_as(Kind::Shared, &client, &slow, ttl));
    let readers = join_all(readers).await;
    let near = acquire(&client, &quick, ttl).await.unwrap();
    redis.node(0).stop();
    let mut far = Box::pin(join_all(readers.iter().map(|it| it.as_ref().unwrap().release())));
    // The first poll sends them, and they wait for the node.
    assert!((&mut far).now_or_never().is_none());
    within(near.release()).await.unwrap();
    redis.node(0).resume();
    for released in within(far).await {
        released.unwrap();
    }
}
