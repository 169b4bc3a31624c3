//! A SQLite file. Faults break its clients' access to it.
#![cfg(feature = "sqlite")]

use std::{path::PathBuf, sync::Arc};

use async_trait::async_trait;
use distlock::Locks;
use lock_sql::{
    Faults, SqlConfig, SqlLock,
    client::{self, Connection, SqliteConnection, sqlite::SqliteConnectOptions},
};
use tempfile::TempDir;
use tokio::time::sleep;

use crate::chaos::{
    plan::Step,
    run::CLIENTS,
    stage::{Connecting, Failure, Home, Stage},
};

pub struct File {
    path: PathBuf,
    faults: Arc<std::sync::Mutex<Vec<Faults>>>,
    _directory: TempDir,
}

impl File {
    pub fn new() -> Result<Self, Failure> {
        let directory = tempfile::tempdir()?;
        let path = directory.path().join("locks.db");
        Ok(Self { path, faults: Arc::default(), _directory: directory })
    }
}

#[async_trait]
impl Stage for File {
    fn kinds(&self) -> &'static [&'static str] {
        &["cut", "half_open"]
    }

    fn home(&self, _client: usize) -> Result<Home, Failure> {
        Home::thread()
    }

    /// Clients connect one after the other, in order.
    fn connect(&self, _client: usize) -> Connecting {
        let (path, faults) = (self.path.clone(), self.faults.clone());
        Box::pin(async move {
            let driver = SqlLock::connect(SqlConfig::file(Some(path))).await?;
            faults.lock().unwrap().push(driver.faults());
            Ok(Locks::new(driver))
        })
    }

    fn url(&self) -> Option<String> {
        Some(format!("sqlite:{}", self.path.display()))
    }

    async fn play(&self, step: &Step) -> Result<String, Failure> {
        let client = step.client % CLIENTS;
        let faults = self.faults.lock().unwrap()[client].clone();
        match step.kind {
            "cut" => faults.cut(),
            _ => faults.cut_replies(),
        }
        sleep(step.lasts).await;
        faults.heal();
        Ok(format!("c{client}"))
    }

    /// Ignores dead entries: the next attempt removes them.
    async fn leftovers(&self) -> Result<Vec<String>, Failure> {
        let now = lock_core::Clock::Boot.now().since(lock_core::Instant::default());
        let options = SqliteConnectOptions::new().filename(&self.path);
        let names: Vec<Vec<u8>> =
            client::query_scalar("SELECT name FROM distlock_v1_entries WHERE expires > ?")
                .bind(i64::try_from(now.as_micros())?)
                .fetch_all(&mut SqliteConnection::connect_with(&options).await?)
                .await?;
        Ok(names.iter().map(|name| String::from_utf8_lossy(name).into_owned()).collect())
    }
}
