//! A private Redis.

mod info;
mod options;
mod resp;

use std::ops::Deref;

use self::{
    options::RedisOptions,
    resp::{Connection, Reply},
};
use crate::{Builder, LabError, Server, builder::Kind};

/// A private redis-server.
///
/// By default every write is in the append-only file before it is answered, so that a kill -9
/// loses nothing.
#[derive(Debug)]
pub struct Redis {
    server: Server,
    password: Option<String>,
}

impl Redis {
    /// Starts a Redis with default options and waits until it answers.
    ///
    /// # Errors
    ///
    /// [`LabError::Missing`] if there is no `redis-server`, [`LabError::Start`] if it does not
    /// start.
    pub async fn start() -> Result<Self, LabError> {
        Self::builder().start().await
    }

    /// Returns the options to choose from.
    pub fn builder() -> Builder<Self> {
        Builder::default()
    }

    /// Runs one command on a connection of its own and returns the reply as text.
    ///
    /// An array becomes one line per element, nil becomes `(nil)`.
    ///
    /// ```no_run
    /// # async fn run(redis: lock_lab::Redis) -> Result<(), lock_lab::LabError> {
    /// redis.command(&[b"SET", b"key", b"value"]).await?;
    /// assert_eq!(redis.command(&[b"GET", b"key"]).await?, "value");
    /// # Ok(()) }
    /// ```
    ///
    /// # Errors
    ///
    /// [`LabError::Reply`] if Redis answers with an error, [`LabError::Io`] if it is not reached or
    /// silent for 5 s.
    pub async fn command(&self, args: &[&[u8]]) -> Result<String, LabError> {
        Ok(self.call(args).await?.to_string())
    }

    /// Returns all keys of database 0, sorted.
    ///
    /// # Errors
    ///
    /// As [`command`](Self::command).
    pub async fn keys(&self) -> Result<Vec<Vec<u8>>, LabError> {
        let mut keys = self.call(&[b"KEYS", b"*"]).await?.into_strings();
        keys.sort();
        Ok(keys)
    }

    async fn call(&self, args: &[&[u8]]) -> Result<Reply, LabError> {
        let (addr, password) = (self.addr(), self.password.clone());
        let args: Vec<_> = args.iter().map(|arg| arg.to_vec()).collect();
        self.ask(async move {
            let args: Vec<_> = args.iter().map(Vec::as_slice).collect();
            Connection::open(addr, password.as_deref()).await?.call(&args).await
        })
        .await
    }
}

impl Kind for Redis {
    type Options = RedisOptions;

    fn new(server: Server, options: RedisOptions) -> Self {
        Self { server, password: options.password }
    }
}

impl Deref for Redis {
    type Target = Server;

    fn deref(&self) -> &Server {
        &self.server
    }
}
