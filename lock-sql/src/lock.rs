//! The driver itself.

use std::{
    path::{Path, PathBuf},
    pin::pin,
    sync::Arc,
    time::Duration,
};

use async_trait::async_trait;
use lock_core::{
    BoxFuture, Clock, Diagnosis, DistributedLock, Entry, Fairness, Fencing, FencingToken,
    FixedTerm, Guarantees, Lease, LockKind, LockName, LossSignal, Mark, Observed, Overlap, Reach,
    Request, Result, Ticket, TokenFloor, Wake, Wish,
    keep::grant::{lease, leases},
};
use tokio::sync::mpsc;
use uuid::Uuid;

use crate::{
    acquire::{self, detach, set},
    config::{SqlConfig, TTL},
    election::observe,
    layout::dialect::Dialect,
    session::Session,
    wire::given_client::GivenPool,
};

/// How late a waiter may notice that a holder has expired.
const SLACK: Duration = Duration::from_millis(500);

/// When tokens may fail to rise.
const FORGETFUL: &str = "unless the server's machine crashes: its commits need not be on the disk then \
                         (innodb_flush_log_at_trx_commit, fsync)";

/// When tokens may fail to rise, where another server may take over.
const LAGGING: &str =
    "unless a standby takes over that lacks the newest commits (failover=managed)";

/// Locks in one database.
#[derive(Debug)]
pub struct SqlLock {
    session: Arc<Session>,
    path: Option<PathBuf>,
    guarantees: Guarantees,
}

impl SqlLock {
    /// Connects, and creates the tables if there are none.
    ///
    /// # Errors
    /// Within 4 s, or a bit more than twice a `connect_timeout` above 2 s:
    ///
    /// - [`Error::Unavailable`](lock_core::Error::Unavailable) if the database cannot be reached.
    /// - [`Error::Denied`](lock_core::Error::Denied) if it refuses the password, if the tables are
    ///   missing and the user may not create them (see [`schema`](crate::schema)), or if the file
    ///   may not be written.
    /// - [`Error::Misconfigured`](lock_core::Error::Misconfigured) if there is no such database or
    ///   no directory for the file.
    /// - [`Error::Rejected`](lock_core::Error::Rejected) if the file is on a network file system,
    ///   has a second name, or is in another time namespace, or if the server cannot keep locks as
    ///   it is set up (see the crate's documentation).
    /// - [`Error::InvalidOption`](lock_core::Error::InvalidOption) for a TTL out of range.
    ///
    /// # Cancel safety
    ///
    /// Dropping the future closes the connection.
    pub fn connect(config: SqlConfig) -> BoxFuture<'static, Result<Self>> {
        Box::pin(async move {
            let mut guarantees = guarantees(&config);
            guarantees.check_ttl(config.default_ttl())?;
            let session = Session::start(&config).await?;
            let (outlives, cautions) = session.durability(config.is_managed()).await?;
            guarantees.survives.restart = outlives > 0;
            if config.is_managed() {
                guarantees.fencing = Fencing::BestEffort(LAGGING);
            }
            if outlives < 2 {
                guarantees.fencing = Fencing::BestEffort(FORGETFUL);
            }
            guarantees.cautions = cautions;
            guarantees.cautions.extend(config.caution());
            Ok(Self { session, path: config.path(), guarantees })
        })
    }

    /// Connects to the database of a pool, with the pool's options. The same as
    /// [`connect`](Self::connect) with [`SqlConfig::from_client`].
    ///
    /// ```no_run
    /// # #[cfg(feature = "postgres")] {
    /// # mod distlock { pub use lock_core::*; pub use lock_sql as sql; }
    /// use distlock::{Locks, sql::{SqlLock, client::PgPool}};
    ///
    /// # async fn example() -> Result<(), Box<dyn std::error::Error>> {
    /// let pool = PgPool::connect("postgres://me:secret@db.example/shop?sslmode=verify-full").await?;
    /// let locks = Locks::new(SqlLock::with_client(&pool).await?);
    /// # Ok(()) }
    /// # }
    /// ```
    ///
    /// # Errors
    ///
    /// Same as [`connect`](Self::connect); also
    /// [`Error::InvalidOption`](lock_core::Error::InvalidOption) if SQLite's database is not a file
    /// yet, or in memory, or if a pool of MySQL names no database.
    ///
    /// # Cancel safety
    ///
    /// Same as [`connect`](Self::connect).
    pub fn with_client(pool: impl Into<GivenPool>) -> BoxFuture<'static, Result<Self>> {
        Self::connect(SqlConfig::from_client(pool))
    }

    /// The file that the locks are in; `None` if they are on a server.
    pub fn path(&self) -> Option<&Path> {
        self.path.as_deref()
    }

    /// Returns the faults that break this client's way to the file.
    #[cfg(all(feature = "properties", feature = "sqlite"))]
    pub fn faults(&self) -> crate::Faults {
        self.session.database.faults()
    }
}

fn guarantees(config: &SqlConfig) -> Guarantees {
    let dialect = config.dialect();
    let mut guarantees = Guarantees::least(dialect.store());
    guarantees.kinds = LockKind::ALL;
    guarantees.overlaps = vec![Overlap::Revoked, Overlap::Deleted];
    // SQLite is one file of one machine, by its boot clock.
    if dialect != Dialect::Sqlite {
        guarantees.overlaps.extend([Overlap::Restart, Overlap::Failover, Overlap::ClockJump]);
    }
    guarantees.fairness = Fairness::Fifo;
    guarantees.wake = Wake::Poll;
    guarantees.fencing = Fencing::Strict("a counter in the database");
    guarantees.fixed_term = FixedTerm::Server;
    guarantees.ttl = TTL;
    guarantees.default_ttl = config.default_ttl();
    guarantees.expiry_slack = SLACK;
    guarantees.names_at_once = set::NAMES;
    guarantees.detach = true;
    guarantees.marks = Some(match dialect {
        Dialect::Sqlite => "a clock of the machine that is set forward",
        _ => "a failover to a server that lacks it, and a server's clock that is set forward",
    });
    if config.is_pushed() {
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
        Clock::Boot
    }

    fn reach(&self) -> Option<Reach> {
        Some(self.session.reach().clone())
    }

    async fn acquire(
        &self,
        request: Request,
        caller: lock_core::Attempt,
    ) -> Result<Box<dyn Lease>> {
        let attempt = self.session.attempt(&request, &caller);
        let granted = acquire::acquire(&self.session, &attempt, &request, &caller);
        lease(&self.session, &attempt, pin!(granted)).await
    }

    async fn try_all(&self, wishes: Vec<Wish>) -> Result<Option<Vec<Box<dyn Lease>>>> {
        let attempt = |(request, caller): &Wish| self.session.attempt(request, caller);
        let attempts: Vec<_> = wishes.iter().map(attempt).collect();
        let granted = set::acquire(&self.session, &attempts, &wishes);
        leases(&self.session, &attempts, pin!(granted)).await
    }

    async fn adopt(
        &self,
        request: Request,
        caller: lock_core::Attempt,
        ticket: Ticket,
    ) -> Result<Box<dyn Lease>> {
        let attempt = self.session.attempt(&request, &caller);
        let adopted = detach::adopt(&self.session, &attempt, &request, &caller, &ticket);
        lease(&self.session, &attempt, pin!(adopted)).await
    }

    async fn inspect(&self, name: &LockName) -> Result<Vec<Entry>> {
        self.session.inspect(name).await
    }

    async fn ping(&self, _name: &LockName) -> Result<()> {
        self.session.ping().await
    }

    async fn diagnose(&self, name: &LockName, attempts: &[Uuid]) -> Result<Diagnosis> {
        self.session.diagnose(name, attempts).await
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

    async fn token_floor(&self) -> Result<TokenFloor> {
        self.session.token_floor().await
    }

    async fn raise_token_floor(&self, above: FencingToken) -> Result<TokenFloor> {
        self.session.raise_token_floor(above).await
    }

    async fn below_token_floor(&self, floor: TokenFloor) -> Result<Vec<(LockName, Uuid)>> {
        self.session.below(floor).await
    }

    async fn mark(&self, name: &LockName) -> Result<Option<Mark>> {
        self.session.mark(name).await
    }

    async fn marks(&self, prefix: &str) -> Result<Vec<(LockName, Mark)>> {
        self.session.marks(prefix).await
    }

    async fn clear_mark(&self, name: &LockName) -> Result<bool> {
        self.session.clear_mark(name).await
    }

    async fn close(&self) -> Result<()> {
        self.session.close().await
    }
}
