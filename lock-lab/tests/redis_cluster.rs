//! A Redis Cluster on 127.0.0.1.

use lock_lab::{LabError, Redis, RedisCluster, is_gone};

use crate::support::until;

type Result = std::result::Result<(), Box<dyn std::error::Error>>;

async fn get(node: &Redis, key: &[u8]) -> std::result::Result<String, LabError> {
    node.command(&[b"GET", key]).await
}

/// Writes through the owner.
async fn set(redis: &RedisCluster, key: &[u8]) -> Result {
    let owner = redis.node(redis.owner(RedisCluster::slot_of(key)).await?);
    owner.command(&[b"SET", key, b"1"]).await?;
    Ok(())
}

fn says<T: std::fmt::Debug>(result: std::result::Result<T, LabError>, word: &str) {
    match result {
        Err(LabError::Reply { reply, .. }) => assert!(reply.starts_with(word), "{reply}"),
        other => panic!("{other:?} instead of {word}"),
    }
}

#[tokio::test]
async fn it_starts_ready_with_all_slots_and_survives_a_primary() -> Result {
    let redis = RedisCluster::start().await?;
    let addrs = redis.addrs();
    let [a, b, c] = [addrs[0], addrs[1], addrs[2]];
    assert_eq!(redis.url(), format!("redis+cluster://{a},{b},{c}"));
    assert_eq!((redis.nodes().len(), redis.primaries().await?), (6, vec![0, 1, 2]));
    for (slot, owner) in [(0, 0), (5460, 0), (5461, 1), (10922, 2), (16383, 2)] {
        assert_eq!(redis.owner(slot).await?, owner, "{slot}");
    }
    // "foo" has the slot 12182.
    assert_eq!(RedisCluster::slot_of(b"{foo}x"), 12182);
    says(get(redis.node(0), b"foo").await, "MOVED 12182");
    set(&redis, b"foo").await?;
    assert_eq!(redis.keys().await?, [b"foo"]);
    redis.await_replicas().await?;

    redis.node(2).kill();
    let new = redis.owner_after(2, 12182).await?;
    assert_eq!((new, get(redis.node(5), b"foo").await?), (5, "1".to_owned()));
    redis.node(2).restart().await?;
    redis.await_replicas().await?;
    says(get(redis.node(2), b"foo").await, "MOVED");
    // Its old primary takes over again, which loses nothing.
    redis.fail_over(2).await?;
    assert_eq!((redis.owner(12182).await?, get(redis.node(2), b"foo").await?), (2, "1".to_owned()));
    Ok(())
}

#[tokio::test]
async fn a_slot_moves_with_its_keys_one_by_one() -> Result {
    let redis = RedisCluster::builder().replicas(0).password("s3 cret").start().await?;
    assert!(redis.url().starts_with("redis+cluster://:s3%20cret@127.0.0.1:"));
    for key in [&b"{foo}1"[..], b"{foo}2", b"{foo}\xFF3"] {
        set(&redis, key).await?;
    }
    assert_eq!(redis.begin_migration(12182, 0).await?, 2);
    assert!(redis.move_key(12182, 2, 0).await?);
    says(get(redis.node(2), b"{foo}4").await, "ASK 12182");
    says(redis.node(2).command(&[b"MGET", b"{foo}1", b"{foo}2", b"{foo}\xFF3"]).await, "TRYAGAIN");
    while redis.move_key(12182, 2, 0).await? {}
    redis.end_migration(12182, 2, 0).await?;
    assert_eq!((redis.owner(12182).await?, redis.node(0).keys().await?.len()), (0, 3));
    for node in [1, 2] {
        says(get(redis.node(node), b"{foo}1").await, "MOVED 12182");
    }
    redis.migrate(12182, 1).await?;
    assert_eq!((redis.owner(12182).await?, redis.node(1).keys().await?.len()), (1, 3));
    Ok(())
}

#[tokio::test]
async fn a_stopped_primary_is_replaced_and_a_drop_leaves_no_process() -> Result {
    let redis = RedisCluster::start().await?;
    redis.node(0).stop();
    assert_eq!(redis.owner_after(0, 7).await?, 3);
    redis.node(0).resume();
    until(|| async { redis.owner(7).await.is_ok_and(|owner| owner == 3) }).await;
    let pids: Vec<_> = redis.nodes().iter().map(|node| node.pid()).collect();
    drop(redis);
    assert!(pids.into_iter().all(is_gone));
    Ok(())
}
