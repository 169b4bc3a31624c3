//! A private ZooKeeper.

mod monitor;
mod options;

use std::{net::SocketAddr, ops::Deref};

use self::options::ZooKeeperOptions;
use crate::{Builder, LabError, Server, ask, builder::Kind};

/// A private ZooKeeper, standalone.
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
    pub async fn start() -> Result<Self, LabError> {
        Self::builder().start().await
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
    pub async fn four_letter(&self, word: &str) -> Result<String, LabError> {
        four_letter(self.addr(), word).await
    }
}

impl Kind for ZooKeeper {
    type Options = ZooKeeperOptions;

    fn new(server: Server, _: ZooKeeperOptions) -> Self {
        Self { server }
    }
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
