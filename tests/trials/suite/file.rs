//! The harness for SQLite: a private file, and clients with faults instead of a network.
#![cfg(feature = "sqlite")]

use std::{path::PathBuf, time::Duration};

use async_trait::async_trait;
use lock_core::{
    LockName, Locks,
    properties::{Client, Failure, Harness},
};
use lock_sql::{
    Faults, SqlConfig, SqlLock,
    client::{self, Connection, SqliteConnection, sqlite::SqliteConnectOptions},
};

struct File {
    path: PathBuf,
    _directory: tempfile::TempDir,
}

pub async fn sqlite() -> Result<Box<dyn Harness>, Failure> {
    let directory = tempfile::tempdir()?;
    let path = directory.path().join("locks.db");
    Ok(Box::new(File { path, _directory: directory }))
}

impl File {
    async fn connect(&self) -> Result<SqliteConnection, Failure> {
        let options = SqliteConnectOptions::new().filename(&self.path);
        Ok(SqliteConnection::connect_with(&options.busy_timeout(Duration::from_secs(5))).await?)
    }
}

#[async_trait]
impl Harness for File {
    async fn client(&self) -> Result<Box<dyn Client>, Failure> {
        let driver = SqlLock::connect(SqlConfig::file(Some(self.path.clone()))).await?;
        Ok(Box::new(Process { faults: driver.faults(), locks: Locks::new(driver) }))
    }

    fn ttl(&self) -> Duration {
        Duration::from_secs(3)
    }

    /// There is no server.
    async fn restart(&self) -> Result<(), Failure> {
        Ok(())
    }

    async fn delete(&self, name: &LockName) -> Result<(), Failure> {
        let delete = client::query("DELETE FROM distlock_v1_entries WHERE name = ?");
        let delete = delete.bind(name.as_str().as_bytes());
        delete.execute(&mut self.connect().await?).await?;
        Ok(())
    }

    /// Ignores dead entries: the next client removes them.
    async fn leftovers(&self) -> Result<Vec<String>, Failure> {
        let now = lock_core::Clock::Boot.now().since(lock_core::Instant::default());
        let left = "SELECT name FROM distlock_v1_entries WHERE expires > ? \
                    UNION ALL SELECT name FROM distlock_v1_marks";
        let names: Vec<Vec<u8>> = client::query_scalar(left)
            .bind(i64::try_from(now.as_micros())?)
            .fetch_all(&mut self.connect().await?)
            .await?;
        Ok(names.iter().map(|name| String::from_utf8_lossy(name).into_owned()).collect())
    }
}

struct Process {
    faults: Faults,
    locks: Locks,
}

#[async_trait]
impl Client for Process {
    fn locks(&self) -> &Locks {
        &self.locks
    }

    async fn cut(&self) -> Result<(), Failure> {
        self.faults.cut();
        Ok(())
    }

    async fn cut_replies(&self) -> Result<(), Failure> {
        self.faults.cut_replies();
        Ok(())
    }

    async fn heal(&self) -> Result<(), Failure> {
        self.faults.heal();
        Ok(())
    }

    async fn lose_replies(&self) -> Result<(), Failure> {
        self.faults.lose_replies();
        Ok(())
    }

    async fn crash(&self) -> Result<(), Failure> {
        self.faults.crash();
        Ok(())
    }
}
