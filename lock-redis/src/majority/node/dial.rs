//! Making a connection to a node.

use std::time::Duration;

use redis::{
    AsyncConnectionConfig, Client, ConnectionAddr, IntoConnectionInfo, RedisResult,
    aio::MultiplexedConnection,
};

use super::super::{
    config::{RedlockConfig, split},
    fault::Fault,
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

    /// Opens a connection.
    ///
    /// # Errors
    ///
    /// The reason why there is none.
    ///
    /// # Cancel safety
    ///
    /// Dropping the future closes the connection.
    pub(super) async fn dial(&self, address: &str) -> Result<MultiplexedConnection, Fault> {
        self.open(address).await.map_err(|error| Fault::of(&error))
    }

    async fn open(&self, address: &str) -> RedisResult<MultiplexedConnection> {
        let (host, port) = split(address).unwrap_or_default();
        let mut login = redis::RedisConnectionInfo::default()
            .set_db(self.config.database)
            .set_lib_name("distlock", env!("CARGO_PKG_VERSION"));
        if let Some(user) = &self.config.user {
            login = login.set_username(user);
        }
        if let Some(password) = &self.config.password {
            login = login.set_password(password);
        }
        let info = ConnectionAddr::Tcp(host, port).into_connection_info()?;
        let client = Client::open(info.set_redis_settings(login))?;
        let options =
            AsyncConnectionConfig::new().set_connection_timeout(None).set_response_timeout(None);
        client.get_multiplexed_async_connection_with_config(&options).await
    }
}
