//! The driver itself.

use std::{path::Path, sync::Arc, time::Duration};

use async_trait::async_trait;
use lock_core::{
    Attempt, Clock, DistributedLock, Entry, Fairness, Fencing, FixedTerm, Guarantees, Lease,
    LockKind, LockName, LossSignal, Observed, Request, Result, Wake,
};
use tokio::sync::mpsc;
use uuid::Uuid;

use crate::{
    config::{SqlConfig, TTL},
    dialect::Dialect,
    entry::Entry as Attempted,
    lease::SqlLease,
    observe, queue,
    session::{CLOCK, Session},
};

/// How late a waiter may notice that a holder has expired.
const SLACK: Duration = Duration::from_millis(500);

/// When tokens may fail to rise.
const FORGETFUL: &str = "unless the server's machine crashes: its commits need not be on the disk then \
                         (innodb_flush_log_at_trx_commit, fsync)";

/// Locks in one database.
#[derive(Debug)]
pub struct SqlLock {
    session: Arc<Session>,
    guarantees: Guarantees,
}

impl SqlLock {
    /// Connects, and creates the tables if there are none.
    ///
    /// # Errors
    ///
    /// Within 4 s: [`Error::Unavailable`](lock_core::Error::Unavailable) if the database cannot be
    /// reached, [`Error::Denied`](lock_core::Error::Denied) if it refuses the password, if the tables
    /// are missing and the user may not create them (see [`schema`](crate::schema)), or if the file may
    /// not be written, [`Error::Rejected`](lock_core::Error::Rejected) if the file is on a network file
    /// system or in another time namespace, [`Error::InvalidOption`](lock_core::Error::InvalidOption)
    /// for a TTL out of range.
    ///
    /// # Cancel safety
    ///
    /// Dropping the future closes the connection.
    pub async fn connect(config: SqlConfig) -> Result<Self> {
        let mut guarantees = guarantees(&config);
        guarantees.check_ttl(config.ttl)?;
        let session = Session::start(&config).await?;
        let outlives = session.outlives().await?;
        guarantees.survives.restart = outlives > 0;
        if outlives < 2 {
            guarantees.fencing = Fencing::BestEffort(FORGETFUL);
        }
        Ok(Self { session, guarantees })
    }

    /// The file that the locks are in; `None` if they are on a server.
    pub fn path(&self) -> Option<&Path> {
        self.session.database.path()
    }

    /// Breaks this client's way to the file.
    #[cfg(all(feature = "properties", feature = "sqlite"))]
    pub fn faults(&self) -> crate::Faults {
        self.session.database.faults()
    }
}

fn guarantees(config: &SqlConfig) -> Guarantees {
    let dialect = config.dialect();
    let mut guarantees = Guarantees::least(dialect.store());
    guarantees.kinds = LockKind::ALL;
    guarantees.fairness = Fairness::Fifo;
    guarantees.wake = Wake::Poll;
    guarantees.fencing = Fencing::Strict("a counter in the database");
    guarantees.fixed_term = FixedTerm::Server;
    guarantees.ttl = TTL;
    guarantees.default_ttl = config.ttl;
    guarantees.expiry_slack = SLACK;
    if dialect == Dialect::Postgres {
        guarantees.wake = Wake::Push;
        guarantees.loss = LossSignal::Push;
    }
    guarantees
}

#[async_trait]
impl DistributedLock for SqlLock {
    fn guarantees(&self) -> &Guarantees {
        &self.guarantees
    }

    fn clock(&self) -> Clock {
        CLOCK
    }

    async fn acquire(&self, request: Request, attempt: Attempt) -> Result<Box<dyn Lease>> {
        let entry = Attempted::new(self.session.dialect(), &request, &attempt);
        self.session.enter(&entry)?;
        let granted = queue::acquire(&self.session, &entry, &request, &attempt).await;
        let held = granted.and_then(|(sent, token)| {
            // Closed or revoked meanwhile, it is to leave nothing all the same.
            let held = entry.hold(sent).map_err(|end| {
                queue::clean_up(&self.session, &entry);
                queue::ended(&self.session, &entry, end)
            });
            Ok((held?, token))
        });
        match held {
            Ok((validity, token)) => {
                Ok(Box::new(SqlLease::new(self.session.clone(), entry, token, validity)))
            }
            Err(error) => {
                self.session.forget(&entry);
                Err(error)
            }
        }
    }

    async fn inspect(&self, name: &LockName) -> Result<Vec<Entry>> {
        self.session.inspect(name).await
    }

    async fn observe(&self, name: &LockName) -> Result<mpsc::Receiver<Observed>> {
        observe::observe(&self.session, name).await
    }

    async fn names(&self, prefix: &str) -> Result<Vec<LockName>> {
        self.session.names(prefix).await
    }

    async fn revoke(&self, name: &LockName, attempt: Uuid) -> Result<bool> {
        self.session.revoke(name, attempt).await
    }

    async fn close(&self) -> Result<()> {
        self.session.close().await
    }
}
