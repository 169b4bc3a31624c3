//! Making a connection to a node.

use std::time::Duration;

use super::super::{config::RedlockConfig, fault::Fault};
use crate::{
    config::{Address, Mode},
    wire::dial::{Dial as Way, Opened},
};

/// How connections to nodes are made.
#[derive(Clone, Debug)]
pub(in super::super) struct Dial {
    config: RedlockConfig,
    /// Time limit of making a connection.
    pub(super) connect_limit: Duration,
}

impl Dial {
    /// The way to all nodes of a configuration.
    pub(in super::super) fn new(config: &RedlockConfig) -> Self {
        Self { connect_limit: config.connect_limit(), config: config.clone() }
    }

    /// Opens a connection, and logs in with the password as it is now.
    ///
    /// # Errors
    ///
    /// The reason why there is none.
    ///
    /// # Cancel safety
    ///
    /// Dropping the future closes the connection.
    pub(super) async fn dial(&self, address: &Address) -> Result<Opened, Fault> {
        let server = self.config.server().map_err(Fault::unfit)?;
        let way = Way::new(&server).map_err(|error| Fault::of(&error))?;
        let options = way.options().set_connection_timeout(None).set_response_timeout(None);
        // Without pushes, the older protocol does.
        way.open(address, Mode::Simple, options).await.map_err(|error| Fault::of(&error))
    }
}
