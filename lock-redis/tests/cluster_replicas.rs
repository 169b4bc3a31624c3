//! A cluster whose locks count when a replica has them.

use std::time::Duration;

use lock_core::{DistributedLock, Effect, Error, Kind, Overlap};
use lock_lab::RedisCluster;

use crate::lab::*;

const TTL: Duration = Duration::from_secs(30);

async fn cluster() -> RedisCluster {
    let builder = RedisCluster::builder().appendonly(false);
    builder.node_timeout(Duration::from_millis(1500)).start().await.unwrap()
}

fn waiting(redis: &RedisCluster) -> String {
    format!("{}?wait_replicas=1", redis.url())
}

/// The primary of a lock, and its replica.
async fn nodes_of(redis: &RedisCluster, lock: &str) -> (usize, usize) {
    let primary = redis.owner(RedisCluster::slot_of(lock.as_bytes())).await.unwrap();
    (primary, primary + 3)
}

#[tokio::test]
async fn a_lock_is_never_granted_that_the_replica_of_its_slot_lacks() {
    let redis = cluster().await;
    let client = driver(&waiting(&redis)).await;
    assert!(!client.guarantees().overlaps.contains(&Overlap::Failover));
    let (primary, replica) = nodes_of(&redis, "orders").await;
    let held = acquire_as(Kind::Shared, &client, "orders", TTL).await.unwrap();
    pause(redis.node(replica)).await;

    let until = held.validity().until();
    let short = within(held.renew()).await.unwrap_err();
    assert!(short.to_string().contains("only 0 of 1 replicas"), "{short}");
    assert_eq!(held.validity().until(), until);
    let refused = acquire_as(Kind::Shared, &client, "orders", TTL).await.unwrap_err();
    assert!(matches!(refused, Error::Unavailable { effect: Effect::None, .. }), "{refused:?}");
    assert_eq!(client.inspect(&name("orders")).await.unwrap().len(), 1);
    // The slots of another primary are none the worse.
    let elsewhere = (0..).map(|number| format!("other/{number}")).find(|lock| {
        let slot = usize::from(RedisCluster::slot_of(lock.as_bytes()));
        slot * 3 / 16384 != primary
    });
    let other = acquire(&client, &elsewhere.unwrap(), TTL).await.unwrap();
    other.release().await.unwrap();

    resume(redis.node(replica)).await;
    within(held.renew()).await.unwrap();
    assert!(held.validity().until() > until);
    held.release().await.unwrap();
}

#[tokio::test]
async fn a_failover_loses_no_lock_that_was_granted() {
    let redis = cluster().await;
    let (one, two) = (driver(&waiting(&redis)).await, driver(&waiting(&redis)).await);
    let (primary, _) = nodes_of(&redis, "orders").await;
    let waited = acquire(&one, "orders", TTL).await.unwrap();
    let waiter = Waiter::start(&two, "orders", TTL);
    until(async || one.inspect(&name("orders")).await.unwrap().len() == 2).await;
    // A lock is handed over just before the kill: that counts when the replica has it.
    waited.release().await.unwrap();
    let held = waiter.granted().await;
    redis.node(primary).kill();
    redis.owner_after(primary, RedisCluster::slot_of(b"orders")).await.unwrap();
    // The new primary has no replica: it grants and renews nothing.
    until(async || {
        let renewed = held.renew().await;
        renewed.is_err_and(|error| error.to_string().contains("only 0 of 1 replicas"))
    })
    .await;
    assert_eq!(held.validity().loss(), None);
    redis.node(primary).restart().await.unwrap();
    redis.await_replicas().await.unwrap();
    within(held.renew()).await.unwrap();
    assert_eq!(held.validity().loss(), None);
    held.release().await.unwrap();
    let next = acquire(&one, "orders", TTL).await.unwrap();
    assert!(next.token() > held.token());
    next.release().await.unwrap();
}
