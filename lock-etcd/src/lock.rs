//! The driver of etcd.

use std::{fmt, sync::Arc, time::Duration};

use async_trait::async_trait;
use etcd_client::Client;
use lock_core::{
    Attempt, BoxFuture, Clock, Diagnosis, DistributedLock, Entry, Fairness, Fencing, FencingToken,
    Guarantees, Lease, LockKind, LockName, LossSignal, Mark, Observed, Reach, Request, Result,
    Ticket, TokenFloor, Wake, Wish, trace,
};
use tokio::{sync::mpsc, task::JoinHandle};
use uuid::Uuid;

use crate::{
    acquire::{self, detach, set},
    config::EtcdConfig,
    election::observe,
    error::{STORE, is_full},
    operators,
    queue::{lists, stream},
    session::store::Store,
    wire::{
        cautions::{self, Server},
        connection::Connection,
        leases::{self, new_lease},
        member::{ANSWER_LIMIT, Limits, Member},
        requests,
    },
};

/// Locks in etcd. See the [crate's documentation](crate).
pub struct EtcdLock {
    store: Arc<Store>,
    guarantees: Guarantees,
}

impl EtcdLock {
    /// Connects, and asks etcd for the shortest TTL that it grants.
    ///
    /// # Errors
    ///
    /// [`Error::Unavailable`](lock_core::Error::Unavailable) if no member answers within the limit
    /// (4 s by default), or no encrypted connection comes about; it names the cause,
    /// [`Error::Denied`](lock_core::Error::Denied) if the login is refused, or if no member's
    /// certificate is accepted, or the client's by none,
    /// [`Error::InvalidOption`](lock_core::Error::InvalidOption) if the default TTL is shorter than
    /// what etcd grants, a limit is out of its range, or a file has no certificate.
    ///
    /// # Cancel safety
    ///
    /// Dropping the future leaves at most an etcd lease of the shortest TTL behind.
    pub fn connect(config: EtcdConfig) -> BoxFuture<'static, Result<Self>> {
        Box::pin(async move {
            let (default_ttl, keys, open) =
                (config.default_ttl(), config.keys(), config.open_login());
            config.check()?;
            let limits = Limits::new(config.timeouts.connect, config.timeouts.request);
            let (mut connection, (shortest, probe, server)) =
                Box::pin(Connection::open(config.source(), limits, first_round))
                    .await
                    .map_err(|failure| failure.into_error("connect", false))?;
            let mut guarantees = guarantees(Duration::from_secs(shortest), default_ttl, &server);
            guarantees.cautions.extend(open);
            if let Err(error) = guarantees.check_ttl(default_ttl) {
                drop(probe.await);
                return Err(error);
            }
            connection.reads_alone = server.crashes_at_reads();
            let store = Store::new(keys, connection, probe);
            let (watcher, sessions) = (store.watcher.clone(), store.sessions.clone());
            let tasks = async move {
                let watching = stream::run(watcher.clone());
                tokio::join!(watching, lists::run(watcher), sessions.check_late_requests())
            };
            tokio::spawn(store.connection.closed.clone().run_until_cancelled_owned(tasks));
            trace::connected(STORE);
            Ok(Self { store, guarantees })
        })
    }

    /// Shares the connection of a client. Same as [`connect`](Self::connect) with
    /// [`EtcdConfig::from_client`], which says what that means.
    ///
    /// ```no_run
    /// # mod distlock { pub use lock_core::*; pub use lock_etcd as etcd; }
    /// use distlock::{Locks, etcd::{EtcdLock, client::{Client, ConnectOptions}}};
    ///
    /// # async fn example() -> Result<(), Box<dyn std::error::Error>> {
    /// let options = ConnectOptions::new().with_require_leader(true);
    /// let client = Client::connect(["10.0.0.1:2379", "10.0.0.2:2379"], Some(options)).await?;
    /// let locks = Locks::new(EtcdLock::with_client(&client).await?);
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
        Self::connect(EtcdConfig::from_client(client))
    }

    /// Returns the store, unless the client is closed.
    fn open(&self) -> Result<&Arc<Store>> {
        self.store.sessions.check_open().map(|()| &self.store)
    }
}

/// Asks everything that connecting needs, in one round: whether the login is valid, the shortest
/// TTL, and what is deployed.
///
/// etcd raises a TTL that is too short for its elections, so a lease of 1 s shows the shortest one.
/// That lease is revoked beside what comes next, and ends by itself if that fails.
async fn first_round(
    member: Arc<Member>,
) -> Result<(u64, JoinHandle<()>, Server), etcd_client::Error> {
    let lease = new_lease();
    let granted = async {
        match leases::send_grant(&member, lease, 1).await {
            // It grants nothing, but people must get in to look. With etcd's own settings:
            Err(error) if is_full(&error) => Ok(2),
            granted => granted,
        }
    };
    let (login, granted, server) =
        tokio::join!(requests::check_login(&member), granted, cautions::ask(&member));
    let mut leases = member.client.lease_client();
    let probe = async move {
        drop(Box::pin(Clock::Boot.timeout(ANSWER_LIMIT, leases.revoke(lease))).await)
    };
    match (login, granted) {
        (Ok(()), Ok(shortest)) => Ok((shortest, tokio::spawn(probe), server)),
        (Err(error), Ok(_)) => {
            probe.await;
            Err(error)
        }
        (Err(error), _) | (_, Err(error)) => Err(error),
    }
}

fn guarantees(shortest: Duration, default_ttl: Duration, server: &Server) -> Guarantees {
    let mut guarantees = Guarantees::least(STORE);
    guarantees.kinds = LockKind::ALL;
    guarantees.survives.restart = server.survives_restart();
    guarantees.survives.failover = server.survives_failover();
    guarantees.overlaps = server.overlaps();
    guarantees.fairness = Fairness::Fifo;
    guarantees.wake = Wake::Push;
    guarantees.fencing =
        Fencing::Strict("the create revision of the lock's key, plus the token floor");
    guarantees.loss = LossSignal::Push;
    guarantees.ttl = shortest..=*guarantees.ttl.end();
    guarantees.default_ttl = default_ttl;
    guarantees.names_at_once = set::MOST;
    guarantees.detach = true;
    guarantees.marks = Some("a clock of a client's machine that is set forward");
    guarantees.cautions = server.cautions();
    // etcd looks for expired leases every 500 ms, and then revokes them by a transaction.
    guarantees.expiry_slack = Duration::from_secs(1);
    guarantees
}

#[async_trait]
impl DistributedLock for EtcdLock {
    fn guarantees(&self) -> &Guarantees {
        &self.guarantees
    }

    fn clock(&self) -> Clock {
        Clock::Boot
    }

    fn reach(&self) -> Option<Reach> {
        Some(self.store.connection.reach.clone())
    }

    async fn acquire(&self, request: Request, attempt: Attempt) -> Result<Box<dyn Lease>> {
        let lease = acquire::acquire(&self.store, &request, &attempt).await?;
        Ok(Box::new(lease))
    }

    async fn try_all(&self, wishes: Vec<Wish>) -> Result<Option<Vec<Box<dyn Lease>>>> {
        let leases = set::try_all(&self.store, &wishes).await?;
        let boxed = |lease| Box::new(lease) as Box<dyn Lease>;
        Ok(leases.map(|leases| leases.into_iter().map(boxed).collect()))
    }

    async fn adopt(
        &self,
        request: Request,
        attempt: Attempt,
        ticket: Ticket,
    ) -> Result<Box<dyn Lease>> {
        let lease = detach::adopt(self.open()?, &request, &attempt, &ticket).await?;
        Ok(Box::new(lease))
    }

    async fn inspect(&self, name: &LockName) -> Result<Vec<Entry>> {
        operators::inspect(self.open()?, name).await
    }

    async fn diagnose(&self, name: &LockName, attempts: &[Uuid]) -> Result<Diagnosis> {
        operators::diagnose(self.open()?, name, attempts).await
    }

    async fn observe(&self, name: &LockName) -> Result<mpsc::Receiver<Observed>> {
        observe::observe(self.open()?, name).await
    }

    async fn names(&self, prefix: &str) -> Result<Vec<LockName>> {
        operators::names(self.open()?, prefix).await
    }

    async fn revoke(&self, name: &LockName, attempt: Uuid) -> Result<bool> {
        operators::revoke(self.open()?, name, attempt, self.guarantees.default_ttl).await
    }

    async fn token_floor(&self) -> Result<TokenFloor> {
        operators::token_floor(self.open()?).await
    }

    async fn raise_token_floor(&self, above: FencingToken) -> Result<TokenFloor> {
        operators::raise_token_floor(self.open()?, above).await
    }

    async fn below_token_floor(&self, _: TokenFloor) -> Result<Vec<(LockName, Uuid)>> {
        operators::below_token_floor(self.open()?).await
    }

    async fn mark(&self, name: &LockName) -> Result<Option<Mark>> {
        operators::mark(self.open()?, name).await
    }

    async fn marks(&self, prefix: &str) -> Result<Vec<(LockName, Mark)>> {
        operators::marks(self.open()?, prefix).await
    }

    async fn clear_mark(&self, name: &LockName) -> Result<bool> {
        operators::clear_mark(self.open()?, name).await
    }

    async fn close(&self) -> Result<()> {
        self.store.sessions.close().await
    }
}

impl Drop for EtcdLock {
    fn drop(&mut self) {
        let sessions = self.store.sessions.clone();
        // On the runtime that connected, wherever it is dropped. If that is gone, the locks end
        // with their TTL. Observers end when this is done.
        self.store.runtime.spawn(async move { drop(sessions.close().await) });
    }
}

impl fmt::Debug for EtcdLock {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("EtcdLock")
            .field("layout", &self.store.layout)
            .field("guarantees", &self.guarantees)
            .finish_non_exhaustive()
    }
}
