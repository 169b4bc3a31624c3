//! A private store of each kind that is compiled in.
#![allow(dead_code, reason = "each test file uses its part")]

use std::{ops::Deref, time::Duration};

use distlock::Locks;
use lock_lab::Server;
use tempfile::TempDir;

/// A running private server; it ends when it is dropped.
pub type Running = Box<dyn Deref<Target = Server> + Send + Sync>;

/// The stores by name, as far as they are compiled in.
pub const STORES: &[&str] = &[
    #[cfg(feature = "sqlite")]
    "sqlite",
    #[cfg(feature = "etcd")]
    "etcd",
    #[cfg(feature = "redis")]
    "redis",
    #[cfg(feature = "zookeeper")]
    "zookeeper",
    #[cfg(feature = "postgres")]
    "postgres",
    #[cfg(feature = "mysql")]
    "mysql",
];

/// Starts a server of the store with this name.
pub async fn start(store: &str) -> Running {
    let started: Result<Running, lock_lab::LabError> = match store {
        "etcd" => lock_lab::Etcd::start().await.map(|server| Box::new(server) as Running),
        "redis" => lock_lab::Redis::start().await.map(|server| Box::new(server) as Running),
        "zookeeper" => lock_lab::ZooKeeper::start().await.map(|server| Box::new(server) as Running),
        "postgres" => lock_lab::Postgres::start().await.map(|server| Box::new(server) as Running),
        "mysql" => lock_lab::MariaDb::start().await.map(|server| Box::new(server) as Running),
        other => panic!("no server for {other}"),
    };
    started.unwrap_or_else(|error| panic!("{error}"))
}

/// A store that nobody else uses: a server's, or a file's. It ends when it is dropped.
pub enum Store {
    Server(Running),
    File(TempDir),
    /// Of this process, by its name.
    Memory(String),
}

impl Store {
    pub async fn open(store: &str) -> Self {
        match store {
            "memory" => Self::Memory(uuid::Uuid::new_v4().simple().to_string()),
            "sqlite" => Self::File(tempfile::tempdir().expect("a directory")),
            server => Self::Server(start(server).await),
        }
    }

    pub fn url(&self) -> String {
        match self {
            Self::Server(server) => server.url(),
            Self::Memory(name) => format!("memory:{name}"),
            Self::File(directory) => format!("sqlite:{}/locks.db", directory.path().display()),
        }
    }
}

/// Connects, or fails the test.
pub async fn connect(url: &str) -> Locks {
    distlock::connect(url).await.unwrap_or_else(|error| panic!("{error}"))
}

/// Waits until something is so; fails the test with `what` if it never is.
pub async fn eventually<F: Future<Output = bool>>(what: &str, mut is_so: impl FnMut() -> F) {
    let wait = async {
        while !is_so().await {
            tokio::time::sleep(Duration::from_millis(10)).await;
        }
    };
    let waited = tokio::time::timeout(Duration::from_secs(20), wait).await;
    waited.unwrap_or_else(|_| panic!("still not so: {what}"));
}
