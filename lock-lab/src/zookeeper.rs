//! A private ZooKeeper.

mod monitor;
mod options;

use std::{net::SocketAddr, ops::Deref};

use self::options::ZooKeeperOptions;
use crate::{Builder, LabError, Place, Server, ask, builder::Kind, cluster::Member};

/// A private ZooKeeper: standalone, or a node of a [`ZooKeeperCluster`](crate::ZooKeeperCluster).
#[derive(Debug)]
pub struct ZooKeeper {
    server: Server,
}

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
        self.ask(async move { four_letter(addr, &word).await }).await
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
        epoch(&four_letter(addr, "srvr").await.ok()?)
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

async fn four_letter(addr: SocketAddr, word: &str) -> Result<String, LabError> {
    let reply = ask::exchange(addr, word.as_bytes()).await?;
    Ok(String::from_utf8_lossy(&reply).into_owned())
}
