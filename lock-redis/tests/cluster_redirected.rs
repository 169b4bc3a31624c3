//! A request that follows a redirection late, after later ones of its attempt.

use std::time::Duration;

use lock_core::{Clock, DistributedLock};
use lock_lab::{Proxy, RedisCluster};

use crate::lab::*;

const TTL: Duration = Duration::from_secs(12);

/// Makes a primary known by another port.
async fn announce(redis: &RedisCluster, primary: usize, port: u16) {
    let text = port.to_string();
    let change = [&b"CONFIG"[..], b"SET", b"cluster-announce-port", text.as_bytes()];
    redis.node(primary).command(&change).await.unwrap();
    for node in redis.nodes() {
        until(async || {
            let nodes = node.command(&[b"CLUSTER", b"NODES"]).await.unwrap();
            nodes.contains(&format!(":{port}@"))
        })
        .await;
    }
    // Its replica goes to the new port, too.
    until(async || {
        let replica = redis.node(primary + RedisCluster::PRIMARIES);
        let info = replica.command(&[b"INFO", b"replication"]).await.unwrap();
        info.contains("master_link_status:up")
    })
    .await;
    let confirm = [&b"WAIT"[..], b"1", b"1000"];
    until(async || redis.node(primary).command(&confirm).await.unwrap() == "1").await;
}

/// A check of a fixed term is on its way while its slot moves. It follows the redirection after its
/// holder's own renewal, and the key must not end before the holder's deadline.
#[tokio::test]
async fn a_check_that_is_redirected_late_takes_no_time_from_a_fixed_term() {
    // The nodes tell each other their ports within half of this time.
    let builder = RedisCluster::builder().node_timeout(Duration::from_secs(10));
    let redis = builder.appendonly(false).start().await.unwrap();
    let slot = RedisCluster::slot_of(b"{t}");
    let from = redis.owner(slot).await.unwrap();
    let to = (from + 1) % RedisCluster::PRIMARIES;
    let proxy = Proxy::start(redis.node(from).addr()).await.unwrap();
    announce(&redis, from, proxy.addr().port()).await;
    // Renewals that replicas must have travel on a connection of their own.
    let client = driver(&format!("{}?layout=native&wait_replicas=1", redis.url())).await;
    let lease = acquire_fixed(&client, "{t}orders", TTL).await.unwrap();
    let renewed = acquire(&client, "{t}renewed", TTL / 2).await.unwrap();
    let left = || lease.validity().until().since(Clock::Boot.now());
    until(async || left() < TTL * 3 / 4).await;

    let id = async |node: usize| redis.node(node).command(&[b"CLUSTER", b"MYID"]).await.unwrap();
    let (number, old, new) = (slot.to_string(), id(from).await, id(to).await);
    for (node, state, other) in [(to, "IMPORTING", &old), (from, "MIGRATING", &new)] {
        let order = ["CLUSTER", "SETSLOT", &number, state, other].map(str::as_bytes);
        redis.node(node).command(&order).await.unwrap();
    }
    while redis.move_key(slot, from, to).await.unwrap() {}
    // After a reconnect both are checked, by one request.
    proxy.reset();
    proxy.hold(b"EVALSHA");
    until(async || proxy.caught() == 1).await;
    redis.end_migration(slot, from, to).await.unwrap();
    // The old owner sends the client to the new one.
    assert_eq!(client.inspect(&name("{t}orders")).await.unwrap().len(), 1);
    let before = lease.validity().until();
    within(lease.renew()).await.unwrap();
    assert!(lease.validity().until() > before);

    let renewals = async || redis.node(to).counters().await.unwrap().get("cmd.evalsha");
    let before = renewals().await;
    proxy.deliver();
    // The check, and then the next renewal of the other lock.
    until(async || renewals().await > before + 1).await;
    let pttl = redis.node(to).command(&[b"PTTL", b"{t}orders"]).await.unwrap();
    let (pttl, believed) = (pttl.parse::<i64>().unwrap(), left().as_millis());
    assert!(u128::try_from(pttl).unwrap_or(0) >= believed, "{pttl} ms of {believed} ms");
    for lease in [lease, renewed] {
        lease.release().await.unwrap();
    }
}
