//! A Redis primary with replicas and sentinels, on 127.0.0.1.

use std::{io, time::Duration};

use lock_lab::{LabError, Redis, RedisSentinels, is_gone};

use crate::support::until;

type Result = std::result::Result<(), Box<dyn std::error::Error>>;

async fn get(node: &Redis, key: &[u8]) -> std::result::Result<String, LabError> {
    node.command(&[b"GET", key]).await
}

async fn set(node: &Redis, key: &[u8]) -> std::result::Result<String, LabError> {
    node.command(&[b"SET", key, b"1"]).await
}

async fn role(node: &Redis) -> std::result::Result<String, LabError> {
    let role = node.command(&[b"ROLE"]).await?;
    Ok(role.lines().next().unwrap_or_default().to_owned())
}

#[tokio::test]
async fn it_starts_ready_for_a_failover_and_names_itself() -> Result {
    let redis = RedisSentinels::start().await?;
    assert_eq!((redis.nodes().len(), redis.sentinels().len()), (3, 3));
    assert_eq!((redis.primary().await?, redis.replicas_of(0)), (0, vec![1, 2]));
    assert_eq!(redis.node(0).command(&[b"WAIT", b"2", b"0"]).await?, "2");
    for (sentinel, addr) in redis.sentinels().iter().zip(redis.sentinel_addrs()) {
        assert_eq!(sentinel.addr(), addr);
        let question = [&b"SENTINEL"[..], b"get-master-addr-by-name", redis.service().as_bytes()];
        let named = sentinel.command(&question).await?;
        assert_eq!(named, format!("127.0.0.1\n{}", redis.node(0).addr().port()));
    }
    assert!(redis.peers(0).is_empty(), "it stands in no network");
    Ok(())
}

#[tokio::test]
async fn a_kill_makes_a_replica_the_primary_and_a_restart_makes_the_old_one_a_replica() -> Result {
    let redis = RedisSentinels::start().await?;
    set(redis.node(0), b"kept").await?;
    assert_eq!(redis.node(0).command(&[b"WAIT", b"2", b"0"]).await?, "2");
    redis.node(0).kill();
    let new = redis.primary_after(0).await?;
    assert_ne!(new, 0);
    assert_eq!((redis.primary().await?, role(redis.node(new)).await?), (new, "master".into()));
    assert_eq!(get(redis.node(new), b"kept").await?, "1");
    redis.await_replicas().await?; // of the two that are left
    set(redis.node(new), b"later").await?;

    redis.node(0).restart().await?;
    redis.await_replicas().await?;
    assert_eq!(role(redis.node(0)).await?, "slave");
    until(|| async { get(redis.node(0), b"later").await.is_ok_and(|value| value == "1") }).await;
    // The role survives the next restart, without a sentinel's help.
    redis.node(0).restart().await?;
    assert_eq!(role(redis.node(0)).await?, "slave");
    Ok(())
}

#[tokio::test]
async fn a_stopped_primary_is_replaced() -> Result {
    let redis = RedisSentinels::start().await?;
    redis.node(0).stop();
    let new = redis.primary_after(0).await?;
    redis.node(0).resume();
    redis.await_replicas().await?;
    assert_eq!((redis.primary().await?, role(redis.node(0)).await?), (new, "slave".into()));
    Ok(())
}

/// The claim that a lock on Redis with sentinels can be lost.
#[tokio::test]
async fn a_write_that_only_the_primary_has_is_gone_after_a_failover() -> Result {
    let redis = RedisSentinels::start().await?;
    set(redis.node(0), b"before").await?;
    assert_eq!(redis.node(0).command(&[b"WAIT", b"2", b"0"]).await?, "2");
    for replica in redis.replicas_of(0) {
        redis.pause_replication(replica).await?;
    }
    assert_eq!(set(redis.node(0), b"during").await?, "OK");
    redis.node(0).kill();
    let new = redis.primary_after(0).await?;
    assert_eq!(get(redis.node(new), b"before").await?, "1");
    assert_eq!(get(redis.node(new), b"during").await?, "(nil)");
    // The old primary's file has the write, but now it is a replica.
    redis.node(0).restart().await?;
    for node in redis.replicas_of(0) {
        redis.resume_replication(node).await?;
    }
    redis.await_replicas().await?;
    assert_eq!(get(redis.node(0), b"during").await?, "(nil)");
    Ok(())
}

#[tokio::test]
async fn a_resumed_replica_gets_the_missed_writes() -> Result {
    let redis = RedisSentinels::builder().replicas(1).start().await?;
    redis.pause_replication(1).await?;
    set(redis.node(0), b"key").await?;
    redis.node(1).restart().await?; // which ends no pause
    assert_eq!(get(redis.node(1), b"key").await?, "(nil)");
    redis.resume_replication(1).await?;
    redis.await_replicas().await?;
    until(|| async { get(redis.node(1), b"key").await.is_ok_and(|value| value == "1") }).await;
    let refused = redis.pause_replication(0).await.expect_err("it is the primary");
    assert!(
        matches!(&refused, LabError::Io { source, .. } if source.kind() == io::ErrorKind::InvalidInput),
        "{refused}"
    );
    Ok(())
}

#[tokio::test]
async fn a_primary_without_enough_replicas_refuses_writes_if_configured() -> Result {
    let redis = RedisSentinels::builder().min_replicas(1, Duration::from_secs(1)).start().await?;
    set(redis.node(0), b"before").await?;
    for replica in redis.replicas_of(0) {
        redis.pause_replication(replica).await?;
    }
    until(|| async {
        matches!(set(redis.node(0), b"during").await,
            Err(LabError::Reply { reply, .. }) if reply.starts_with("NOREPLICAS"))
    })
    .await;
    Ok(())
}

#[tokio::test]
async fn a_drop_leaves_no_process() -> Result {
    let redis = RedisSentinels::builder().replicas(1).start().await?;
    let nodes = redis.nodes().iter().map(|node| node.pid());
    let pids: Vec<_> = nodes.chain(redis.sentinels().iter().map(|it| it.pid())).collect();
    assert_eq!((pids.len(), pids.iter().any(|pid| is_gone(*pid))), (5, false));
    drop(redis);
    assert!(pids.into_iter().all(is_gone));
    Ok(())
}
