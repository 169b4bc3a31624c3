//! A Redis primary with replicas and sentinels in a network, and cuts in it.

use lock_lab::{LabError, Network, Redis, RedisSentinels};

use crate::support::eventually;

type Result = std::result::Result<(), Box<dyn std::error::Error>>;

async fn take(node: &Redis, holder: &[u8]) -> std::result::Result<String, LabError> {
    node.command(&[b"SET", b"lock", holder, b"NX", b"PX", b"600000"]).await
}

/// Each primary grants the lock once, and the old one loses its grant.
async fn a_split_makes_two_primaries_until_it_is_healed() -> Result {
    let network = Network::new()?;
    let redis = RedisSentinels::start_on(&network).await?;
    let old = redis.primary().await?;
    let place = redis.node(old).place().expect("it stands in the network");
    network.split(&[place], &redis.peers(old))?;
    assert_eq!(take(redis.node(old), b"A").await?, "OK");
    let new = redis.primary_after(old).await?;
    assert_eq!(take(redis.node(new), b"B").await?, "OK");
    for node in [old, new] {
        let role = redis.node(node).command(&[b"ROLE"]).await?;
        assert!(role.starts_with("master\n"), "node {node} is a {role}");
    }
    assert_eq!(redis.node(old).command(&[b"GET", b"lock"]).await?, "A");

    network.heal()?;
    redis.await_replicas().await?;
    assert_eq!(redis.node(old).command(&[b"GET", b"lock"]).await?, "B");
    assert_eq!(redis.primary().await?, new);
    Ok(())
}

async fn a_write_while_the_replicas_are_cut_off_is_gone_after_a_failover() -> Result {
    let network = Network::new()?;
    let redis = RedisSentinels::start_on(&network).await?;
    for replica in redis.replicas_of(0) {
        redis.pause_replication(replica).await?;
    }
    assert_eq!(take(redis.node(0), b"A").await?, "OK");
    redis.node(0).kill();
    let new = redis.primary_after(0).await?;
    assert_eq!(take(redis.node(new), b"B").await?, "OK");
    for node in redis.replicas_of(0) {
        redis.resume_replication(node).await?;
    }
    redis.await_replicas().await?;
    let last = 3 - new; // of 0, 1 and 2, the one that is neither dead nor primary
    assert_eq!(redis.node(last).command(&[b"GET", b"lock"]).await?, "B");
    Ok(())
}

/// One sentinel is enough to find the primary dead, but two must elect the one that acts.
async fn sentinels_that_are_cut_off_from_each_other_promote_no_replica() -> Result {
    let network = Network::new()?;
    let redis = RedisSentinels::builder().quorum(1).on(&network).start().await?;
    let [one, two, three] =
        [0, 1, 2].map(|i| redis.sentinel(i).place().expect("it stands in the network"));
    network.split(&[one], &[two, three])?;
    network.cut(two, three)?;
    redis.node(0).kill();
    for sentinel in redis.sentinels() {
        eventually("its election failed", || {
            sentinel.log().contains("-failover-abort-not-elected")
        })
        .await;
    }
    assert_eq!(redis.primary_now().await, Some(0));
    network.heal()?;
    assert_ne!(redis.primary_after(0).await?, 0);
    Ok(())
}

crate::trials!(
    a_split_makes_two_primaries_until_it_is_healed,
    a_write_while_the_replicas_are_cut_off_is_gone_after_a_failover,
    sentinels_that_are_cut_off_from_each_other_promote_no_replica,
);
