//! The options of Redis servers that belong together.

use std::ffi::OsString;

use super::Redis;
use crate::{Authority, Builder, LabError, Network};

/// Options for nodes of Redis that belong together, and for what is particular to `S`:
/// [`RedisSentinelsBuilder`](crate::RedisSentinelsBuilder) and
/// [`RedisClusterBuilder`](crate::RedisClusterBuilder).
#[derive(Clone, Debug)]
pub struct RedisGroup<S> {
    pub(super) node: Builder<Redis>,
    pub(super) replicas: usize,
    pub(super) own: S,
}

impl<S> RedisGroup<S> {
    /// Sets the number of replicas of each primary. Default: 2 with sentinels, 1 in a cluster.
    pub fn replicas(mut self, replicas: usize) -> Self {
        self.replicas = replicas;
        self
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

    /// Demands TLS of clients, and encrypts between all servers, with certificates of this authority
    /// for 127.0.0.1. Default: without TLS.
    pub fn tls(mut self, authority: &Authority) -> Result<Self, LabError> {
        let issued = authority.server(&["127.0.0.1"])?;
        self.node = self.node.tls(issued.certificate(), issued.key());
        self.node.options.nodes = Some(authority.certificate());
        Ok(self)
    }

    /// Demands a login of clients: this user. It is part of the URL of a cluster. Default: none.
    pub fn user(mut self, user: impl Into<String>, password: impl Into<String>) -> Self {
        self.node = self.node.user(user, password);
        self
    }

    /// Gives each server a place of its own in a network. Default: ports of 127.0.0.1.
    pub fn on(mut self, network: &Network) -> Self {
        self.node = self.node.on(network);
        self
    }

    /// Checks that this machine has all that is needed, without starting anything.
    pub fn installed(&self) -> Result<(), LabError> {
        self.node.installed()
    }
}
