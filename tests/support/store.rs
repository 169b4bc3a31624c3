//! A store of any kind, by the scheme of its URLs.

use std::ops::Deref;

use lock_lab::{Backup, LabError, Lent, Server, Shift};
use tempfile::TempDir;

use crate::support::servers::{self, Failure};

/// A server of a pool, which the test has for itself.
pub struct Running(Box<dyn Loan>);

trait Loan: Send + Sync {
    fn server(&self) -> &Server;
    /// Keeps it from the tests after this one.
    fn spoil(&self);
}

impl<S: Deref<Target = Server> + Send + Sync> Loan for Lent<S> {
    fn server(&self) -> &Server {
        self
    }

    fn spoil(&self) {
        self.spoil();
    }
}

/// Gets a server of the store with this name, or fails the test.
pub async fn start(store: &str) -> Running {
    lend(store, false).await.unwrap_or_else(|error| panic!("{error}"))
}

/// The same for very long TTLs.
pub async fn start_patient(store: &str) -> Running {
    lend(store, true).await.unwrap_or_else(|error| panic!("{error}"))
}

async fn lend(store: &str, is_patient: bool) -> Result<Running, Failure> {
    match (store, is_patient) {
        #[cfg(feature = "etcd")]
        ("etcd", _) => Running::of(servers::etcd().await?),
        #[cfg(feature = "redis")]
        ("redis", _) => Running::of(servers::redis().await?),
        #[cfg(feature = "zookeeper")]
        ("zookeeper", false) => Running::of(servers::zookeeper().await?),
        #[cfg(feature = "zookeeper")]
        ("zookeeper", true) => Running::of(servers::patient_zookeeper().await?),
        #[cfg(feature = "postgres")]
        ("postgres", _) => Running::of(servers::postgres(false).await?),
        #[cfg(feature = "mysql")]
        ("mysql", _) => Running::of(servers::mariadb(false).await?),
        _ => Err(format!("no server for {store:?}").into()),
    }
}

impl Running {
    fn of<S: Deref<Target = Server> + Send + Sync + 'static>(
        server: Lent<S>,
    ) -> Result<Self, Failure> {
        Ok(Self(Box::new(server)))
    }

    /// Kills it. No other test gets it.
    pub fn kill(&self) {
        self.0.spoil();
        (**self).kill();
    }

    /// Restarts it. No other test gets it.
    pub async fn restart(&self) -> Result<(), LabError> {
        self.0.spoil();
        (**self).restart().await
    }

    /// Moves its clocks. No other test gets it.
    pub fn move_clocks(&self, wall: Shift, monotonic: Shift) -> Result<(), LabError> {
        self.0.spoil();
        (**self).move_clocks(wall, monotonic)
    }

    /// Copies its data. No other test gets it.
    pub async fn back_up(&self) -> Result<Backup, LabError> {
        self.0.spoil();
        (**self).back_up().await
    }

    /// Goes back to a backup. No other test gets it.
    pub async fn restore(&self, backup: &Backup) -> Result<(), LabError> {
        self.0.spoil();
        (**self).restore(backup).await
    }
}

impl Deref for Running {
    type Target = Server;

    fn deref(&self) -> &Server {
        self.0.server()
    }
}

/// A store for one test.
pub enum Store {
    Server(Running),
    /// SQLite: a folder for its file.
    File(TempDir),
    /// The memory of this process, under a unique name.
    Memory(String),
}

impl Store {
    /// Opens the store with this name, or fails the test.
    pub async fn open(store: &str) -> Self {
        Self::open_by(store, async || start(store).await).await
    }

    /// The same for very long TTLs.
    pub async fn open_patient(store: &str) -> Self {
        Self::open_by(store, async || start_patient(store).await).await
    }

    async fn open_by(store: &str, server: impl AsyncFnOnce() -> Running) -> Self {
        match store {
            "memory" => Self::Memory(uuid::Uuid::new_v4().simple().to_string()),
            "sqlite" => Self::File(tempfile::tempdir().expect("a folder")),
            _ => Self::Server(server().await),
        }
    }

    /// The URL for clients.
    pub fn url(&self) -> String {
        match self {
            Self::Server(server) => server.url(),
            Self::File(folder) => format!("sqlite:{}", folder.path().join("locks.db").display()),
            Self::Memory(name) => format!("memory:{name}"),
        }
    }
}
