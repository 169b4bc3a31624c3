//! A private Redis.

mod cluster;
mod counters;
mod group;
mod independent;
mod options;
mod resp;
mod role;
mod secured;
mod sentinel;
mod sentinels;

pub use self::{
    cluster::{RedisCluster, RedisClusterBuilder},
    independent::IndependentRedis,
    sentinel::Sentinel,
    sentinels::{RedisSentinels, RedisSentinelsBuilder},
};
use self::{
    options::RedisOptions,
    resp::{Connection, Reply},
    secured::{LAB_PASSWORD, Login},
};
use crate::{
    Builder, LabError, Server,
    builder::{self, Kind},
};

/// A private redis-server.
///
/// By default every write is in the append-only file before its reply, so a kill -9 loses nothing.
#[derive(Debug)]
pub struct Redis {
    server: Server,
    password: Option<String>,
}

builder::kind!(Redis);

impl Redis {
    /// Runs one command on a connection of its own and returns the reply as text.
    ///
    /// An array becomes one line per element, and nil becomes `(nil)`.
    pub async fn command(&self, args: &[&[u8]]) -> Result<String, LabError> {
        Ok(self.call(args).await?.to_string())
    }

    /// Returns all keys of database 0, sorted.
    pub async fn keys(&self) -> Result<Vec<Vec<u8>>, LabError> {
        let mut keys = self.call(&[b"KEYS", b"*"]).await?.into_strings();
        keys.sort();
        Ok(keys)
    }

    async fn call(&self, args: &[&[u8]]) -> Result<Reply, LabError> {
        ask(&self.server, self.password.clone(), args).await
    }
}

impl Builder<Redis> {
    /// Demands a password from clients. It is part of the URL. Default: none.
    pub fn password(mut self, password: impl Into<String>) -> Self {
        self.options.password = Some(password.into());
        self
    }

    /// Demands a login of clients: this user, who may do all that locks need. It is part of the URL.
    /// Default: none.
    pub fn user(mut self, user: impl Into<String>, password: impl Into<String>) -> Self {
        self.options.user = Some(Login { user: user.into(), password: password.into() });
        self.options.password = Some(LAB_PASSWORD.to_owned());
        self
    }

    /// Sets whether each write reaches the disk before its reply (`appendfsync always`).
    ///
    /// Without it a restart loses everything. Default: true.
    pub fn appendonly(mut self, appendonly: bool) -> Self {
        self.options.appendonly = appendonly;
        self
    }
}

impl Kind for Redis {
    type Options = RedisOptions;

    fn new(server: Server, options: RedisOptions) -> Self {
        Self { server, password: options.password }
    }
}

/// Runs one command on a connection of its own.
async fn ask(server: &Server, password: Option<String>, args: &[&[u8]]) -> Result<Reply, LabError> {
    let addr = server.control();
    let args: Vec<_> = args.iter().map(|arg| arg.to_vec()).collect();
    let question = async move {
        let args: Vec<_> = args.iter().map(Vec::as_slice).collect();
        Connection::open(addr, password.as_deref()).await?.call(&args).await
    };
    server.ask(question).await
}
