//! Several servers for tests that change no more than their data. They start slowly, and go from
//! test to test. They never take one of them for dead, however busy the machine is.

use std::time::Duration;

use lock_lab::{LabError, Lent, Pool, Redis, RedisCluster, RedisSentinels};

use super::nobody_is_connected;

const NEVER: Duration = Duration::from_secs(600);

static SENTINELS: Pool<RedisSentinels> = Pool::new();
static CLUSTERS: Pool<RedisCluster> = Pool::new();

/// A primary with two replicas and three sentinels.
pub async fn sentinels() -> Lent<RedisSentinels> {
    let start = async || RedisSentinels::builder().in_memory().down_after(NEVER).start().await;
    SENTINELS.lend(async |redis| empty(&redis.nodes()[..1]).await, start).await.unwrap()
}

/// Three primaries.
pub async fn cluster() -> Lent<RedisCluster> {
    let builder = RedisCluster::builder().replicas(0).appendonly(false).node_timeout(NEVER);
    CLUSTERS
        .lend(async |redis| empty(redis.nodes()).await, async || builder.start().await)
        .await
        .unwrap()
}

async fn empty(primaries: &[Redis]) -> Result<(), LabError> {
    for node in primaries {
        nobody_is_connected(node).await;
        node.command(&[b"FLUSHALL"]).await?;
    }
    Ok(())
}
