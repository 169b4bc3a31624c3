//! A deployment and its network.

use std::{sync::Mutex, time::Duration};

use lock_lab::{LabError, Network, Place, Redis, RedisCluster, RedisSentinels, Side};

pub enum Servers {
    Sentinel(RedisSentinels),
    Cluster(RedisCluster),
}

impl Servers {
    pub fn url(&self) -> String {
        match self {
            Self::Sentinel(redis) => redis.url(),
            Self::Cluster(redis) => redis.url(),
        }
    }

    /// The servers with the locks, as long as there is no failover.
    pub fn primaries(&self) -> &[Redis] {
        match self {
            Self::Sentinel(redis) => &redis.nodes()[..1],
            Self::Cluster(redis) => &redis.nodes()[..RedisCluster::PRIMARIES],
        }
    }

    /// All that a client speaks with.
    pub fn places(&self) -> Vec<Place> {
        let nodes = match self {
            Self::Sentinel(redis) => redis.nodes(),
            Self::Cluster(redis) => redis.nodes(),
        };
        let mut places: Vec<_> = nodes.iter().filter_map(|node| node.place()).collect();
        if let Self::Sentinel(redis) = self {
            places.extend(redis.sentinels().iter().filter_map(|sentinel| sentinel.place()));
        }
        places
    }

    /// Kills all that have locks, and starts them again with their data.
    pub async fn restart(&self) -> Result<(), LabError> {
        self.primaries().iter().for_each(|node| node.kill());
        for node in self.primaries() {
            node.relaunch()?;
        }
        for node in self.primaries() {
            node.ready().await?;
        }
        if let Self::Cluster(redis) = self {
            for node in self.primaries() {
                while !node.command(&[b"CLUSTER", b"INFO"]).await?.contains("cluster_state:ok") {
                    tokio::time::sleep(Duration::from_millis(20)).await;
                }
            }
            redis.owner(0).await?;
        }
        Ok(())
    }
}

/// A deployment and its network.
pub struct Lab {
    pub servers: Servers,
    pub network: Network,
    /// Sides that no client uses now: a network has room for a limited number.
    idle: Mutex<Vec<Side>>,
    pub is_shared: bool,
}

impl Lab {
    pub fn shared(network: Network, servers: Servers) -> Self {
        Self { servers, network, idle: Mutex::default(), is_shared: true }
    }

    pub fn alone(network: Network, servers: Servers) -> Self {
        Self { is_shared: false, ..Self::shared(network, servers) }
    }

    pub fn side(&self) -> Result<Side, LabError> {
        let idle = self.idle.lock().unwrap().pop();
        idle.map_or_else(|| self.network.side(), Ok)
    }

    /// Takes a side back, with its network whole.
    pub fn back(&self, side: Side) {
        if self.network.rejoin(side.place()).is_ok() {
            self.idle.lock().unwrap().push(side);
        }
    }
}
