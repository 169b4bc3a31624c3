//! A private ZooKeeper.

mod four_letter;
mod monitor;
mod options;

use std::{net::SocketAddr, ops::Deref, time::Duration};

use self::options::ZooKeeperOptions;
use crate::{
    Builder, LabError, Place, Server,
    builder::Kind,
    cluster::{Cluster, Member},
};

/// A private ZooKeeper: standalone, or a node of a [`ZooKeeperCluster`].
#[derive(Debug)]
pub struct ZooKeeper {
    server: Server,
}

/// Three ZooKeepers that are one store.
pub type ZooKeeperCluster = Cluster<ZooKeeper>;

impl ZooKeeper {
    /// Starts a ZooKeeper with default options and waits until it answers.
    ///
    /// # Errors
    ///
    /// [`LabError::Missing`] if there is no `java` or no ZooKeeper, [`LabError::Start`] if it does
    /// not start.
    ///
    /// # Cancel safety
    ///
    /// Dropping the future ends what it has started.
    pub async fn start() -> Result<Self, LabError> {
        Self::builder().start().await
    }

    /// Checks that this machine has all that it needs with default options, without starting it.
    ///
    /// # Errors
    ///
    /// [`LabError::Missing`] names the missing program or file, and the command that installs it.
    pub fn installed() -> Result<(), LabError> {
        Self::builder().installed()
    }

    /// Returns the options to choose from.
    pub fn builder() -> Builder<Self> {
        Builder::default()
    }

    /// Sends a command of four letters, such as `dump`, `wchp` or `cons`, and returns the answer.
    ///
    /// # Errors
    ///
    /// [`LabError::Io`] if ZooKeeper is not reached or silent for 5 s.
    ///
    /// # Cancel safety
    ///
    /// Dropping the future does not stop a request that was sent.
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

impl Deref for ZooKeeper {
    type Target = Server;

    fn deref(&self) -> &Server {
        &self.server
    }
}
