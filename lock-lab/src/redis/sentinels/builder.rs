//! What a primary, its replicas and their sentinels are started with.

use std::{ffi::OsString, net::SocketAddr, time::Duration};

use super::{Redis, RedisSentinels, Sentinel, until};
use crate::{
    Builder, LabError, Network,
    redis::{role::Role, sentinel::Watch},
};

const SENTINELS: usize = 3;

/// Options for a [`RedisSentinels`].
#[derive(Clone, Debug)]
pub struct RedisSentinelsBuilder {
    node: Builder<Redis>,
    replicas: usize,
    quorum: usize,
    down_after: Duration,
    failover_timeout: Duration,
}

impl Default for RedisSentinelsBuilder {
    fn default() -> Self {
        Self {
            node: Builder::default(),
            replicas: 2,
            quorum: 2,
            down_after: Duration::from_secs(2),
            failover_timeout: Duration::from_secs(3),
        }
    }
}

impl RedisSentinelsBuilder {
    /// Sets how many replicas the primary has. Default: 2.
    pub fn replicas(mut self, replicas: usize) -> Self {
        self.replicas = replicas;
        self
    }

    /// Sets how many of the three sentinels must agree that the primary is down, from 1 to 3. Two
    /// must elect the one that acts, in any case. Default: 2.
    pub fn quorum(mut self, quorum: usize) -> Self {
        self.quorum = quorum;
        self
    }

    /// Sets after which silence a sentinel takes a server for dead, in whole milliseconds. Default:
    /// 2 s, since a loaded machine keeps a server silent for a while.
    pub fn down_after(mut self, down_after: Duration) -> Self {
        self.down_after = down_after;
        self
    }

    /// Sets how long a failover may take; the next attempt starts after twice this time. In whole
    /// milliseconds. Default: 3 s.
    pub fn failover_timeout(mut self, failover_timeout: Duration) -> Self {
        self.failover_timeout = failover_timeout;
        self
    }

    /// Lets a primary refuse writes unless so many replicas answered within `max_lag`, which counts
    /// in whole seconds, from 1 s. Default: it asks for none.
    pub fn min_replicas(self, to_write: usize, max_lag: Duration) -> Self {
        let seconds = max_lag.as_secs() + u64::from(max_lag.subsec_nanos() > 0);
        self.arg("--min-replicas-to-write")
            .arg(to_write.to_string())
            .arg("--min-replicas-max-lag")
            .arg(seconds.max(1).to_string())
    }

    /// Sets whether each write reaches the disk before its reply. Default: true.
    pub fn appendonly(mut self, appendonly: bool) -> Self {
        self.node = self.node.appendonly(appendonly);
        self
    }

    /// Lets the nodes write no data to files, so that a restart loses it. Default: off.
    pub fn in_memory(mut self) -> Self {
        self.node = self.node.in_memory();
        self
    }

    /// Adds an argument of each node's program, after those of the lab. Default: none.
    ///
    /// A setting of one node alone is a command to it: `CONFIG SET replica-priority 10` makes the
    /// sentinels prefer it, which read that every 10 s.
    pub fn arg(mut self, arg: impl Into<OsString>) -> Self {
        self.node = self.node.arg(arg);
        self
    }

    /// Gives each node and each sentinel a place of its own in a network. Default: ports of
    /// 127.0.0.1.
    pub fn on(mut self, network: &Network) -> Self {
        self.node = self.node.on(network);
        self
    }

    /// Tells whether all that is needed is on this machine, without starting anything.
    ///
    /// # Errors
    ///
    /// [`LabError::Missing`] names what is not there, and the command that installs it.
    pub fn installed(&self) -> Result<(), LabError> {
        self.node.installed()
    }

    /// Starts all, and waits until a failover is possible.
    ///
    /// # Errors
    ///
    /// As [`RedisSentinels::start`].
    ///
    /// # Cancel safety
    ///
    /// Dropping the future kills the servers and deletes their data.
    pub async fn start(self) -> Result<RedisSentinels, LabError> {
        let mut nodes = vec![self.node(Role::Primary).await?];
        let primary = nodes[0].addr();
        for _ in 0..self.replicas {
            nodes.push(self.node(Role::ReplicaOf(primary)).await?);
        }
        let network = self.node.common.network.clone();
        let mut started = RedisSentinels { nodes, sentinels: Vec::new(), network };
        // A sentinel that comes earlier learns of a replica 10 s later.
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
        let Self { quorum, down_after, failover_timeout, .. } = *self;
        let mut common = self.node.common.clone();
        common.args.clear();
        let watch = Watch { primary, quorum, down_after, failover_timeout };
        Sentinel::start(&common, watch).await
    }
}
