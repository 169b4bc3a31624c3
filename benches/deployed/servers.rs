//! Starts the servers, and connects both sides.

use std::time::Duration;

use distlock::Locks;
use lock_lab::{IndependentRedis, Redis, RedisCluster, RedisSentinels};

use super::Deployed;
use crate::bench::{
    Pair,
    floor::redis::{majority, pair},
};

/// The votes of a server of Redlock count when it is older than this.
const MAX_TTL: Duration = Duration::from_secs(2);

/// All deployments, in memory.
pub struct Servers {
    single: Redis,
    sentinels: RedisSentinels,
    cluster: RedisCluster,
    five: IndependentRedis,
}

impl Servers {
    pub async fn start() -> Self {
        let five = Redis::builder().in_memory().start_independent(5).await.expect("five servers");
        let single = Redis::builder().in_memory().start().await.expect("redis");
        let sentinels = RedisSentinels::builder().in_memory().start().await.expect("sentinels");
        let cluster = RedisCluster::builder().replicas(0).appendonly(false);
        let cluster = cluster.start().await.expect("a cluster");
        tokio::time::sleep(MAX_TTL * 2).await;
        Self { single, sentinels, cluster, five }
    }

    pub async fn deployed(&self) -> Vec<Deployed<'_>> {
        let (all, five) = (|addrs: Vec<_>| addrs.join(","), self.five.addrs());
        let text = |addrs: Vec<std::net::SocketAddr>| addrs.iter().map(|a| a.to_string()).collect();
        let sentinels = all(text(self.sentinels.sentinel_addrs()));
        let sentinels = format!("redis+sentinel://{sentinels}/{}", self.sentinels.service());
        let majors: Vec<String> = text(five);
        let redlock = format!("redlock://{}?ttl=2s&max_ttl=2s", majors.join(","));
        let slot = RedisCluster::slot_of(b"floor-0");
        let owner = self.cluster.node(self.cluster.owner(slot).await.expect("an owner"));
        let bare = async |node: &Redis| pair(&node.addr().to_string()).await.of(0);
        vec![
            Deployed {
                what: "single",
                nodes: vec![&self.single],
                ours: ours(&self.single.url()).await,
                bare: bare(&self.single).await,
                turns: Vec::new(),
            },
            Deployed {
                what: "sentinel",
                nodes: self.sentinels.nodes()[..1].iter().collect(),
                ours: ours(&sentinels).await,
                bare: bare(self.sentinels.node(0)).await,
                turns: Vec::new(),
            },
            Deployed {
                what: "cluster",
                nodes: self.cluster.nodes().iter().collect(),
                ours: ours(&self.cluster.url()).await,
                bare: bare(owner).await,
                turns: Vec::new(),
            },
            Deployed {
                what: "redlock",
                nodes: self.five.iter().collect(),
                ours: ours(&redlock).await,
                bare: majority(&majors).await,
                turns: Vec::new(),
            },
        ]
    }
}

async fn ours(url: &str) -> Pair {
    let locks: Locks = distlock::connect(url).await.expect("a connection");
    let lock = locks.lock("bench-0").expect("a name");
    Box::new(move || {
        let (lock, _open) = (lock.clone(), locks.clone());
        Box::pin(async move {
            lock.acquire().await.expect("the lock").release().await.expect("a release");
        })
    })
}
