//! Any store, named by the scheme of its URLs: for tests and benches that run on several stores.

use std::ops::Deref;

use tempfile::TempDir;
use uuid::Uuid;

use crate::{
    Builder, Etcd, LabError, MariaDb, Postgres, Redis, Server, ZooKeeper, builder::Kind, server,
};

/// The stores that have a server, by the schemes of their URLs.
pub const SERVERS: [&str; 5] = ["etcd", "redis", "zookeeper", "postgres", "mysql"];

/// A private server of any kind. A drop ends it.
#[derive(Debug)]
pub enum AnyServer {
    /// etcd, one node.
    Etcd(Etcd),
    /// Redis.
    Redis(Redis),
    /// ZooKeeper, one node.
    ZooKeeper(ZooKeeper),
    /// PostgreSQL.
    Postgres(Postgres),
    /// MariaDB, for MySQL.
    MariaDb(MariaDb),
}

/// A private store of any kind. A drop ends it and deletes its data.
#[derive(Debug)]
pub enum AnyStore {
    /// One of [`SERVERS`].
    Server(Box<AnyServer>),
    /// SQLite: a folder for its file.
    File(TempDir),
    /// The memory of this process, under a unique name.
    Memory(String),
}

impl AnyServer {
    /// Starts the server of the store with this scheme, and waits until it answers.
    ///
    /// Panics if the scheme is none of [`SERVERS`].
    pub async fn start(scheme: &str) -> Result<Self, LabError> {
        Self::start_if(scheme, false).await
    }

    async fn start_if(scheme: &str, in_memory: bool) -> Result<Self, LabError> {
        match scheme {
            "etcd" => start(in_memory).await.map(Self::Etcd),
            "redis" => start(in_memory).await.map(Self::Redis),
            "zookeeper" => start(in_memory).await.map(Self::ZooKeeper),
            "postgres" => start(in_memory).await.map(Self::Postgres),
            "mysql" => start(in_memory).await.map(Self::MariaDb),
            other => panic!("no server for {other:?}; there are {SERVERS:?}"),
        }
    }
}

async fn start<K: Kind>(in_memory: bool) -> Result<K, LabError> {
    let builder = Builder::<K>::default();
    if in_memory { builder.in_memory().start().await } else { builder.start().await }
}

impl Deref for AnyServer {
    type Target = Server;

    fn deref(&self) -> &Server {
        match self {
            Self::Etcd(server) => server,
            Self::Redis(server) => server,
            Self::ZooKeeper(server) => server,
            Self::Postgres(server) => server,
            Self::MariaDb(server) => server,
        }
    }
}

impl AnyStore {
    /// Opens the store with this scheme: one of [`SERVERS`], `sqlite` or `memory`.
    ///
    /// Panics with the text of the error if it cannot be started, or if there is no such store.
    pub async fn open(scheme: &str) -> Self {
        Self::open_if(scheme, false).await.unwrap_or_else(|error| panic!("{error}"))
    }

    /// Same as [`open`](Self::open) with the data in memory, so that no disk decides its speed; see
    /// [`Builder::in_memory`].
    pub async fn open_in_memory(scheme: &str) -> Self {
        Self::try_in_memory(scheme).await.unwrap_or_else(|error| panic!("{error}"))
    }

    /// Same as [`open_in_memory`](Self::open_in_memory), with an error if it cannot be started.
    pub async fn try_in_memory(scheme: &str) -> Result<Self, LabError> {
        Self::open_if(scheme, true).await
    }

    async fn open_if(scheme: &str, in_memory: bool) -> Result<Self, LabError> {
        match scheme {
            "memory" => Ok(Self::Memory(Uuid::new_v4().simple().to_string())),
            "sqlite" => server::folder(&tempfile::Builder::new(), in_memory).map(Self::File),
            server => {
                let started = AnyServer::start_if(server, in_memory).await;
                started.map(Box::new).map(Self::Server)
            }
        }
    }

    /// Returns the URL for clients.
    pub fn url(&self) -> String {
        match self {
            Self::Server(server) => server.url(),
            Self::File(folder) => format!("sqlite:{}", folder.path().join("locks.db").display()),
            Self::Memory(name) => format!("memory:{name}"),
        }
    }

    /// Returns the server, if there is one.
    pub fn server(&self) -> Option<&Server> {
        match self {
            Self::Server(server) => Some(server),
            Self::File(_) | Self::Memory(_) => None,
        }
    }
}
