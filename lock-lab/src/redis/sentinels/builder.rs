//! The options of a primary, its replicas and their sentinels.

use std::{net::SocketAddr, time::Duration};

use super::{Redis, RedisSentinels, Sentinel, until};
use crate::{
    Builder, LabError,
    redis::{group::RedisGroup, options::RedisOptions, role::Role, sentinel::Watch},
};

const SENTINELS: usize = 3;

/// Options for a [`RedisSentinels`].
pub type RedisSentinelsBuilder = RedisGroup<Watching>;

/// What is particular to sentinels.
#[derive(Clone, Debug)]
pub struct Watching {
    quorum: usize,
    down_after: Duration,
}

impl Default for RedisSentinelsBuilder {
    fn default() -> Self {
        let own = Watching { quorum: 2, down_after: Duration::from_secs(2) };
        Self { node: Builder::default(), replicas: 2, own }
    }
}

impl RedisSentinelsBuilder {
    /// Sets how many of the three sentinels must agree that the primary is down, from 1 to 3. In
    /// any case, two must elect the one that acts. Default: 2.
    pub fn quorum(mut self, quorum: usize) -> Self {
        self.own.quorum = quorum;
        self
    }

    /// Sets the silence after which a sentinel takes a server for dead, in whole milliseconds.
    /// Default: 2 s, since a loaded machine keeps a server silent for a while.
    pub fn down_after(mut self, down_after: Duration) -> Self {
        self.own.down_after = down_after;
        self
    }

    /// Lets a primary refuse writes unless this many replicas answered within `max_lag`, which
    /// counts in whole seconds, from 1 s. Default: no replica is needed.
    pub fn min_replicas(self, to_write: usize, max_lag: Duration) -> Self {
        let seconds = max_lag.as_secs() + u64::from(max_lag.subsec_nanos() > 0);
        self.arg("--min-replicas-to-write")
            .arg(to_write.to_string())
            .arg("--min-replicas-max-lag")
            .arg(seconds.max(1).to_string())
    }

    /// Starts all, and waits until a failover is possible.
    pub async fn start(self) -> Result<RedisSentinels, LabError> {
        let mut nodes = vec![self.node(Role::Primary).await?];
        let primary = nodes[0].addr();
        for _ in 0..self.replicas {
            nodes.push(self.node(Role::ReplicaOf(primary)).await?);
        }
        let network = self.node.common.network.clone();
        let mut started = RedisSentinels { nodes, sentinels: Vec::new(), network };
        // A sentinel that starts earlier finds a replica 10 s later.
        until("waiting for replicas", || started.are_linked(0)).await?;
        for _ in 0..SENTINELS {
            started.sentinels.push(self.sentinel(primary).await?);
        }
        started.await_replicas().await?;
        Ok(started)
    }

    async fn node(&self, role: Role) -> Result<Redis, LabError> {
        let mut node = self.node.clone();
        node.options.role = Some(role);
        node.start().await
    }

    async fn sentinel(&self, primary: SocketAddr) -> Result<Sentinel, LabError> {
        let Watching { quorum, down_after } = self.own;
        let mut common = self.node.common.clone();
        common.args.clear();
        let RedisOptions { nodes, user, .. } = self.node.options.clone();
        let watch = Watch { primary, quorum, down_after, nodes, user };
        Sentinel::start(&common, watch).await
    }
}
