//! Opens a connection to a server, and logs in.

use redis::{
    AsyncConnectionConfig, Client, ProtocolVersion, RedisConnectionInfo, RedisError, RedisResult,
    aio::MultiplexedConnection,
};

use super::own_client::Transport;
use crate::config::{Address, Mode, RedisConfig};

/// The way to the servers of a deployment: transport and login are the same for all.
#[derive(Clone, Debug)]
pub(crate) struct Dial {
    transport: Transport,
    user: Option<String>,
    password: Option<String>,
    database: i64,
}

/// A connection that is logged in.
#[derive(Clone, Debug)]
pub(crate) struct Opened {
    pub(crate) redis: MultiplexedConnection,
}

impl Dial {
    /// The way that a configuration describes.
    ///
    /// # Errors
    ///
    /// The client library's error if the configuration is invalid.
    pub(crate) fn new(config: &RedisConfig) -> RedisResult<Self> {
        let dial = Self {
            transport: config.transport.clone(),
            user: config.user.clone(),
            password: config.password.clone(),
            database: config.database,
        };
        // Checked here, so that a wrong setting fails before anything is sent.
        Client::open(dial.transport.info("127.0.0.1".to_owned(), 1, dial.login(Mode::Queue)?)?)?;
        Ok(dial)
    }

    /// The way to the sentinels of a configuration, which have a login of their own.
    ///
    /// # Errors
    ///
    /// Same as [`new`](Self::new).
    pub(crate) fn of_sentinels(config: &RedisConfig) -> RedisResult<Self> {
        Ok(Self { user: None, password: None, database: 0, ..Self::new(config)? })
    }

    /// Returns the options on which a connection is based.
    pub(crate) fn options(&self) -> AsyncConnectionConfig {
        self.transport.options.clone()
    }

    /// Connects to a server and logs in, with the password as it is now. `options`: see
    /// [`options`](Self::options).
    ///
    /// # Errors
    ///
    /// The client library's error.
    ///
    /// # Cancel safety
    ///
    /// Dropping the future closes the connection.
    pub(crate) async fn open(
        &self,
        address: &Address,
        mode: Mode,
        options: AsyncConnectionConfig,
    ) -> Result<Opened, RedisError> {
        let login = self.login(mode)?;
        let info = self.transport.info(address.host.clone(), address.port, login)?;
        let client = Client::open(info)?;
        let redis = client.get_multiplexed_async_connection_with_config(&options).await?;
        Ok(Opened { redis })
    }

    /// The queue mode needs RESP3, for pushes.
    fn login(&self, mode: Mode) -> RedisResult<RedisConnectionInfo> {
        let mut login = self
            .transport
            .login
            .clone()
            .set_db(self.database)
            .set_lib_name("distlock", env!("CARGO_PKG_VERSION"));
        if mode == Mode::Queue {
            login = login.set_protocol(ProtocolVersion::RESP3);
        }
        if let Some(user) = &self.user {
            login = login.set_username(user);
        }
        if let Some(password) = &self.password {
            login = login.set_password(password);
        }
        Ok(login)
    }
}
