//! The driver itself.

use std::{pin::pin, sync::Arc, time::Duration};

use async_trait::async_trait;
use lock_core::{
    BoxFuture, Clock, Diagnosis, DistributedLock, Entry, Fairness, Fencing, FencingToken,
    FixedTerm, Guarantees, Lease, LockKind, LockName, Mark, Observed, Overlap, Reach, Request,
    Result, Ticket, TokenFloor, Wake, Wish,
    keep::{
        errors::unsupported,
        grant::{lease, leases},
    },
    only_exclusive,
};
use redis::Client;
use tokio::sync::mpsc;
use uuid::Uuid;

use crate::{
    acquire::{self, detach, set, simple},
    config::{Mode, RedisConfig, TTL},
    election::observe,
    error::STORE,
    layout::key::Key,
    session::{Session, attempt::Attempt, renewal::period},
};

/// When tokens may fail to rise.
const FENCING: &str = "unless the server's clock is set back while the name's last token is lost \
                       (a failover, a flush, a restart without its data), or by more than has \
                       passed since the last grant, if that is a day or more";
/// What loses the mark of work that is done.
const MARKS: &str = "a failover to a replica that lacks it, a restart without its data, an \
                     eviction (maxmemory-policy), and a server's clock that is set forward";
/// The longest delay until a waiter notices that a holder's key has expired.
const SLACK: Duration = Duration::from_millis(500);

/// Locks on one Redis server.
#[derive(Debug)]
pub struct RedisLock {
    session: Arc<Session>,
    guarantees: Guarantees,
}

impl RedisLock {
    /// Connects to a server.
    ///
    /// # Errors
    ///
    /// Within 4 s: [`Error::Unavailable`](lock_core::Error::Unavailable) if it cannot be reached,
    /// [`Error::Denied`](lock_core::Error::Denied) if it refuses the password or a command that
    /// locks need, [`Error::InvalidOption`](lock_core::Error::InvalidOption) for a TTL out of
    /// range.
    ///
    /// # Cancel safety
    ///
    /// Dropping the future closes the connection.
    pub fn connect(config: RedisConfig) -> BoxFuture<'static, Result<Self>> {
        Box::pin(async move {
            let mut guarantees = guarantees(&config);
            guarantees.check_ttl(config.default_ttl())?;
            let session = Box::pin(Session::start(config)).await?;
            session.describe_deployment(&mut guarantees).await;
            Ok(Self { session, guarantees })
        })
    }

    /// Connects to the server of a client, with its login, database and transport. Same as
    /// [`connect`](Self::connect) with [`RedisConfig::from_client`].
    ///
    /// ```no_run
    /// # mod distlock { pub use lock_core::*; pub use lock_redis as redis; }
    /// use distlock::{Locks, redis::{RedisLock, client}};
    ///
    /// # async fn example() -> Result<(), Box<dyn std::error::Error>> {
    /// let client = client::Client::open("rediss://me:secret@redis.example/2")?;
    /// let locks = Locks::new(RedisLock::with_client(&client).await?);
    /// # Ok(()) }
    /// ```
    ///
    /// # Errors
    ///
    /// Same as [`connect`](Self::connect).
    ///
    /// # Cancel safety
    ///
    /// Same as [`connect`](Self::connect).
    pub fn with_client(client: &Client) -> BoxFuture<'static, Result<Self>> {
        Self::connect(RedisConfig::from_client(client))
    }

    fn attempt(&self, request: &Request, caller: &lock_core::Attempt) -> Arc<Attempt> {
        let (mode, ticket) = (self.session.config.mode, self.session.ticket(caller.id()));
        Attempt::new(mode, self.key(&request.name), ticket, request, period(mode, request.ttl))
    }

    fn key(&self, name: &LockName) -> Key {
        Key::new(&self.session.config, name)
    }
}

fn guarantees(config: &RedisConfig) -> Guarantees {
    let mut guarantees = Guarantees::least(STORE);
    if config.mode == Mode::Queue {
        guarantees.kinds = LockKind::ALL;
        guarantees.fairness = Fairness::Fifo;
        guarantees.wake = Wake::Push;
        guarantees.marks = Some(MARKS);
    }
    guarantees.overlaps = vec![
        Overlap::Revoked,
        Overlap::Deleted,
        Overlap::Restart,
        Overlap::Failover,
        Overlap::ClockJump,
    ];
    guarantees.fencing = Fencing::BestEffort(FENCING);
    // A number in a script is a double.
    guarantees.greatest_token = FencingToken::new((1 << 53) - 1);
    guarantees.fixed_term = FixedTerm::Server;
    guarantees.ttl = TTL;
    guarantees.default_ttl = config.default_ttl();
    guarantees.expiry_slack = SLACK;
    guarantees.names_at_once = set::NAMES;
    guarantees.detach = true;
    guarantees
}

#[async_trait]
impl DistributedLock for RedisLock {
    fn guarantees(&self) -> &Guarantees {
        &self.guarantees
    }

    fn clock(&self) -> Clock {
        Clock::Boot
    }

    fn reach(&self) -> Option<Reach> {
        Some(self.session.reach.clone())
    }

    async fn acquire(
        &self,
        request: Request,
        caller: lock_core::Attempt,
    ) -> Result<Box<dyn Lease>> {
        let attempt = self.attempt(&request, &caller);
        let granted = async {
            match self.session.config.mode {
                Mode::Queue => acquire::acquire(&self.session, &attempt, &request, &caller).await,
                Mode::Simple => simple::acquire(&self.session, &attempt, &request, &caller).await,
            }
        };
        lease(&self.session, &attempt, pin!(granted)).await
    }

    async fn try_all(&self, wishes: Vec<Wish>) -> Result<Option<Vec<Box<dyn Lease>>>> {
        let Some((_, caller)) = wishes.first() else { return Ok(Some(Vec::new())) };
        only_exclusive(STORE, &wishes)?;
        let attempt = |(request, caller): &Wish| self.attempt(request, caller);
        let attempts: Vec<_> = wishes.iter().map(attempt).collect();
        let granted = set::acquire(&self.session, &attempts, caller);
        leases(&self.session, &attempts, pin!(granted)).await
    }

    async fn adopt(
        &self,
        request: Request,
        caller: lock_core::Attempt,
        ticket: Ticket,
    ) -> Result<Box<dyn Lease>> {
        let attempt = self.attempt(&request, &caller);
        let adopted = detach::adopt(&self.session, &attempt, &caller, &ticket);
        lease(&self.session, &attempt, pin!(adopted)).await
    }

    async fn inspect(&self, name: &LockName) -> Result<Vec<Entry>> {
        self.session.inspect(&self.key(name)).await
    }

    async fn diagnose(&self, name: &LockName, attempts: &[Uuid]) -> Result<Diagnosis> {
        self.session.diagnose(&self.key(name), attempts).await
    }

    async fn observe(&self, name: &LockName) -> Result<mpsc::Receiver<Observed>> {
        if self.session.config.mode == Mode::Simple {
            return Err(unsupported(STORE, "observe an election with mode=simple"));
        }
        observe::observe(&self.session, self.key(name)).await
    }

    async fn names(&self, prefix: &str) -> Result<Vec<LockName>> {
        self.session.names(prefix).await
    }

    async fn revoke(&self, name: &LockName, attempt: Uuid) -> Result<bool> {
        self.session.revoke(&self.key(name), attempt).await
    }

    async fn token_floor(&self) -> Result<TokenFloor> {
        self.session.token_floor(None).await
    }

    async fn raise_token_floor(&self, above: FencingToken) -> Result<TokenFloor> {
        self.session.token_floor(Some(above)).await
    }

    async fn mark(&self, name: &LockName) -> Result<Option<Mark>> {
        self.session.mark(&self.key(name)).await
    }

    async fn marks(&self, prefix: &str) -> Result<Vec<(LockName, Mark)>> {
        self.session.marks(prefix).await
    }

    async fn clear_mark(&self, name: &LockName) -> Result<bool> {
        self.session.clear_mark(&self.key(name)).await
    }

    async fn close(&self) -> Result<()> {
        self.session.close().await
    }
}
