//! A private ZooKeeper.

mod counters;
mod encryption;
mod four_letter;
mod options;
mod protect;

use std::{net::SocketAddr, time::Duration};

use self::options::ZooKeeperOptions;
use crate::{
    Builder, LabError, Place, Server,
    builder::{self, Kind},
    cluster::{Cluster, Member},
};

/// A private ZooKeeper: standalone, or a node of a [`ZooKeeperCluster`].
#[derive(Debug)]
pub struct ZooKeeper {
    server: Server,
}

/// Three ZooKeepers that are one store.
pub type ZooKeeperCluster = Cluster<ZooKeeper>;

builder::kind!(ZooKeeper);

impl ZooKeeper {
    /// Returns the address that speaks TLS alone, if the server speaks TLS; else
    /// the address for clients.
    pub fn secure_addr(&self) -> SocketAddr {
        self.last_addr()
    }

    /// Sends a command of four letters, such as `dump`, `wchp` or `cons`, and returns the answer.
    pub async fn four_letter(&self, word: &str) -> Result<String, LabError> {
        let (addr, word) = (self.addr(), word.to_owned());
        self.ask(async move { four_letter::send(addr, &word).await }).await
    }
}

impl Builder<ZooKeeper> {
    /// Sets ZooKeeper's unit of time. Session timeouts lie between 2 and 20 ticks, and the server
    /// looks for dead sessions once a tick. Default: 500 ms, so sessions of 1 s to 10 s.
    pub fn tick(mut self, tick: Duration) -> Self {
        self.options.tick = tick;
        self
    }

    /// Adds a line to the configuration file, after those of the lab, so that it takes precedence.
    /// Default: none; the lab sets `initLimit=10` and `syncLimit=4` (ticks).
    pub fn setting(mut self, key: impl Into<String>, value: impl Into<String>) -> Self {
        self.options.settings.push((key.into(), value.into()));
        self
    }

    /// Lets the root belong to this login of the scheme `digest`: no other client reads or creates
    /// nodes there. The URL has the login. Default: the root belongs to all.
    pub fn login(mut self, user: impl Into<String>, password: impl Into<String>) -> Self {
        self.options.login = Some((user.into(), password.into()));
        self
    }
}

impl Kind for ZooKeeper {
    type Options = ZooKeeperOptions;

    fn new(server: Server, _: ZooKeeperOptions) -> Self {
        Self { server }
    }
}

impl Member for ZooKeeper {
    fn join(options: &mut ZooKeeperOptions, index: usize, places: &[Place]) {
        options.join(index, places);
    }

    async fn term(addr: SocketAddr) -> Option<u64> {
        epoch(&four_letter::send(addr, "srvr").await.ok()?)
    }
}

/// Reads the leader's epoch from a leader's reply: the upper half of its last transaction.
fn epoch(reply: &str) -> Option<u64> {
    let zxid = reply.lines().find_map(|line| line.strip_prefix("Zxid: 0x"))?;
    let zxid = u64::from_str_radix(zxid, 16).ok()?;
    reply.contains("\nMode: leader").then_some(zxid >> 32)
}
