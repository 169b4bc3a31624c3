//! A private ZooKeeper.

mod builder;
mod monitor;

use std::{net::SocketAddr, ops::Deref};

pub use self::builder::ZooKeeperBuilder;
use crate::{LabError, Server, ask};

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
    pub fn builder() -> ZooKeeperBuilder {
        ZooKeeperBuilder::default()
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
