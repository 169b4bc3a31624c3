//! The options of a primary, its replicas and their sentinels.

use std::{ffi::OsString, net::SocketAddr, time::Duration};

use super::{Redis, RedisSentinels, Sentinel, until};
use crate::{
    Authority, Builder, LabError, Network,
    redis::{role::Role, secured::Encryption, sentinel::Watch},
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
    /// Sets the number of replicas of the primary. Default: 2.
    pub fn replicas(mut self, replicas: usize) -> Self {
        self.replicas = replicas;
        self
    }

    /// Sets how many of the three sentinels must agree that the primary is down, from 1 to 3. In
    /// any case, two must elect the one that acts. Default: 2.
    pub fn quorum(mut self, quorum: usize) -> Self {
        self.quorum = quorum;
        self
    }

    /// Sets the silence after which a sentinel takes a server for dead, in whole milliseconds.
    /// Default: 2 s, since a loaded machine keeps a server silent for a while.
    pub fn down_after(mut self, down_after: Duration) -> Self {
        self.down_after = down_after;
        self
    }

    /// Sets the longest failover, in whole milliseconds. The next attempt starts after twice this
    /// time. Default: 3 s.
    pub fn failover_timeout(mut self, failover_timeout: Duration) -> Self {
        self.failover_timeout = failover_timeout;
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

    /// Sets whether each write reaches the disk before its reply. Default: true.
    pub fn appendonly(mut self, appendonly: bool) -> Self {
        self.node = self.node.appendonly(appendonly);
        self
    }

    /// Lets the nodes write no data to files: a restart loses it. Default: off.
    pub fn in_memory(mut self) -> Self {
        self.node = self.node.in_memory();
        self
    }

    /// Adds an argument of each node's program, after those of the lab. Default: none.
    ///
    /// For a setting of one node alone, send a command to it: after
    /// `CONFIG SET replica-priority 10`, the sentinels prefer that node. They read the priority
    /// every 10 s.
    pub fn arg(mut self, arg: impl Into<OsString>) -> Self {
        self.node = self.node.arg(arg);
        self
    }

    /// Demands TLS of clients, and encrypts between nodes and sentinels, with certificates of this
    /// authority for 127.0.0.1. Default: without TLS.
    pub fn tls(mut self, authority: &Authority) -> Result<Self, LabError> {
        self.node.options.encryption = Some(Encryption::of_nodes(authority)?);
        Ok(self)
    }

    /// Demands a login of clients at nodes and at sentinels: this user. Default: none.
    pub fn user(mut self, user: impl Into<String>, password: impl Into<String>) -> Self {
        self.node = self.node.user(user, password);
        self
    }

    /// Gives each node and each sentinel a place of its own in a network. Default: ports of
    /// 127.0.0.1.
    pub fn on(mut self, network: &Network) -> Self {
        self.node = self.node.on(network);
        self
    }

    /// Checks that this machine has all that is needed, without starting anything.
    pub fn installed(&self) -> Result<(), LabError> {
        self.node.installed()
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
        let Self { quorum, down_after, failover_timeout, .. } = *self;
        let mut common = self.node.common.clone();
        common.args.clear();
        let (encryption, user) =
            (self.node.options.encryption.clone(), self.node.options.user.clone());
        let watch = Watch { primary, quorum, down_after, failover_timeout, encryption, user };
        Sentinel::start(&common, watch).await
    }
}
