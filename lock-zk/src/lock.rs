//! The driver: connects, and tells what ZooKeeper guarantees.

use std::{
    ops::RangeInclusive,
    sync::{
        Arc,
        atomic::{AtomicBool, Ordering::Relaxed},
    },
    time::Duration,
};

use async_trait::async_trait;
use lock_core::{
    Attempt, BoxFuture, Clock, Diagnosis, DistributedLock, Effect, Entry, Fairness, Fencing,
    FencingToken, FixedTerm, Guarantees, Lease, LockKind, LockName, LossSignal, Mark, Observed,
    Overlap, Reach, Request, Result, TokenFloor, Wake, Wish,
    duration::shown,
    keep::{
        cancel::unless_cancelled,
        errors::{denied, invalid},
        limits::DEFAULT_TTL,
    },
    only_exclusive,
};
use tokio::sync::mpsc;
use uuid::Uuid;
use zookeeper_client::Connector;

use crate::{
    acquire::{
        Acquire,
        set::{AcquireSet, NAMES_AT_ONCE},
    },
    config::ZkConfig,
    election::observe::observe,
    error::{self, STORE, cancelled},
    layout::mark::Dated,
    operators::{self, diagnose, inspect},
    session::{
        End, Session,
        deadline::LEAST_TICKS,
        deployment::{check_access, members},
        pool::{Sessions, checked_ttl},
    },
    wire::{
        cautions::Facts,
        questions::{self, Timing},
        route::Route,
        tls_error::CERTIFICATE_REFUSED,
    },
};

/// How long the first connection and the first requests may take in all; and the requests alone.
const CONNECT_LIMIT: Duration = Duration::from_secs(4);
const CONNECT_REST: Duration = Duration::from_secs(1);
/// Shorter sessions leave the client no time to notice a broken connection and make a new one.
const SHORTEST_TTL: Duration = Duration::from_millis(500);

/// Locks in ZooKeeper.
#[derive(Debug)]
pub struct ZkLock {
    sessions: Arc<Sessions>,
    guarantees: Guarantees,
}

impl ZkLock {
    /// Connects with sessions that a connector makes. The same as [`connect`](Self::connect) with
    /// [`ZkConfig::from_connector`].
    ///
    /// ```no_run
    /// # mod distlock { pub use lock_core::*; pub use lock_zk as zookeeper; }
    /// use distlock::{Locks, zookeeper::{ZkLock, client::Client}};
    ///
    /// # async fn example() -> lock_core::Result<()> {
    /// let connector = Client::connector().with_auth("digest", b"me:secret");
    /// let locks = Locks::new(ZkLock::with_connector(connector, "10.0.0.1:2181/app").await?);
    /// # Ok(()) }
    /// ```
    ///
    /// # Errors
    ///
    /// Same as [`ZkConfig::from_connector`] and [`connect`](Self::connect).
    ///
    /// # Cancel safety
    ///
    /// Same as [`connect`](Self::connect).
    pub fn with_connector(connector: Connector, cluster: &str) -> BoxFuture<'static, Result<Self>> {
        let config = ZkConfig::from_connector(connector, cluster);
        Box::pin(async move { Self::connect(config?).await })
    }

    /// Connects, asks which TTLs the server grants, and opens the session of the default TTL.
    ///
    /// # Errors
    ///
    /// [`Unavailable`](lock_core::Error::Unavailable) within 4 s if no server answers,
    /// [`Denied`](lock_core::Error::Denied) if the login may not read the locks' directory, or if
    /// no server's certificate is accepted, or the client's by none,
    /// [`InvalidOption`](lock_core::Error::InvalidOption) if the server does not grant the TTL of
    /// the URL, [`Misconfigured`](lock_core::Error::Misconfigured) if the chroot does not exist.
    ///
    /// # Cancel safety
    ///
    /// Dropping the future leaves nothing but sessions that end by themselves.
    pub fn connect(config: ZkConfig) -> BoxFuture<'static, Result<Self>> {
        Box::pin(async move {
            let config = config.checked()?;
            let hosts = config.hosts.join(", ");
            let limit = config.timeouts.connect.map_or(CONNECT_LIMIT, |limit| limit + CONNECT_REST);
            let connected = Clock::Boot.timeout(limit, Box::pin(connect(config))).await;
            connected.unwrap_or_else(|| {
                let source = format!("no answer from {hosts} within {}", shown(limit));
                Err(error::unavailable("connect", Effect::None, source))
            })
        })
    }

    async fn session(&self, ttl: Duration, attempt: &Attempt) -> Result<Arc<Session>> {
        let session = unless_cancelled(Some(attempt), self.sessions.get(ttl)).await;
        session.unwrap_or_else(|| Err(cancelled()))
    }

    /// Asks in any session, for requests that hold nothing; in the next one if a raise of the token
    /// floor ends it meanwhile.
    async fn ask<T, F: Future<Output = Result<T>>>(
        &self,
        ask: impl Fn(Arc<Session>) -> F,
    ) -> Result<T> {
        loop {
            let session = self.sessions.any(self.guarantees.default_ttl).await?;
            let answer = ask(session.clone()).await;
            if answer.is_ok() || session.end() != Some(End::Raised) {
                return answer;
            }
        }
    }

    /// Makes the attempts of all wishes in one session, as one request needs it.
    async fn set(&self, ttl: Duration, caller: &Attempt, wishes: &[Wish]) -> Result<AcquireSet> {
        let session = self.session(ttl, caller).await?;
        let acquire = |(request, attempt): &Wish| {
            let directory = self.sessions.config.directory(&request.name)?;
            Ok(Acquire::new(session.clone(), directory, request.clone(), attempt.clone()))
        };
        wishes.iter().map(acquire).collect::<Result<_>>().map(AcquireSet)
    }
}

/// Returns the servers' timeouts and tick. Servers that are reached by TLS alone cannot be asked:
/// the usual multiples of the tick count as their timeouts.
async fn timing(route: &Route) -> Result<Timing> {
    match (route.config.plain_hosts().as_slice(), route.config.tick) {
        ([], Some(tick)) => Ok(Timing { timeouts: tick * 2..=tick * 20, tick, told: false }),
        ([], None) => {
            let allowed = "the tickTime of the servers, which cannot be asked by TLS";
            Err(invalid("tick", "none", allowed))
        }
        (plain, _) => {
            let told = questions::timing(plain, &route.dialer).await;
            told.map_err(|error| match error.kind() {
                CERTIFICATE_REFUSED => denied(STORE, "connect", error),
                _ => error::unavailable("connect", Effect::None, error),
            })
        }
    }
}

/// Says that the default TTL is another one than on other stores.
fn other_ttl(default: Duration, granted: &RangeInclusive<Duration>) -> String {
    format!(
        "the servers grant session timeouts of {} to {}, so the default TTL is {} instead of {}; \
         set ttl, or minSessionTimeout and maxSessionTimeout of the servers",
        shown(*granted.start()),
        shown(*granted.end()),
        shown(default),
        shown(DEFAULT_TTL),
    )
}

async fn connect(config: ZkConfig) -> Result<ZkLock> {
    let route = Route::open(config).await?;
    let config = route.config.clone();
    let timing = timing(&route).await?;
    let (tick, shorter) = timing.tick(config.tick);
    let (least, most) = timing.timeouts.into_inner();
    let least = least.max(SHORTEST_TTL);
    let narrowed = config.ttl.is_none() && !(least..=most).contains(&DEFAULT_TTL);
    let usual = DEFAULT_TTL.max(tick * LEAST_TICKS).min(most).max(least);
    let default_ttl = checked_ttl(config.ttl.unwrap_or(usual), &(least..=most))?;
    let sessions = Sessions::new(route, tick);
    let session = sessions.get(default_ttl).await?;
    let (members, facts, access) =
        tokio::join!(members(&session), Facts::ask(&session.route), check_access(&session));
    access?;
    let alone = facts.stands_alone(members);
    let least = if alone { least } else { least.max(tick * LEAST_TICKS) };
    checked_ttl(default_ttl, &(least..=most))?;
    drop(session);
    let mut guarantees = Guarantees::least(STORE);
    guarantees.kinds = LockKind::ALL;
    guarantees.survives.restart = true;
    guarantees.survives.failover = members.is_some_and(|members| members >= 3);
    guarantees.overlaps = vec![Overlap::Revoked, Overlap::Deleted];
    if !alone {
        guarantees.overlaps.push(Overlap::LeaderStalled);
    }
    guarantees.fairness = Fairness::Fifo;
    guarantees.wake = Wake::Push;
    guarantees.fencing = Fencing::Strict("czxid, plus the token floor");
    guarantees.loss = LossSignal::Push;
    guarantees.fixed_term = FixedTerm::Client;
    guarantees.expiry_slack = tick * 3 / 2 + Duration::from_millis(250);
    guarantees.names_at_once = NAMES_AT_ONCE;
    guarantees.marks = Some("a server's clock that is set forward");
    guarantees.ttl = least..=most;
    guarantees.default_ttl = default_ttl;
    guarantees.cautions = facts.cautions(members, tick);
    guarantees.cautions.extend(shorter);
    if narrowed {
        guarantees.cautions.push(other_ttl(default_ttl, &guarantees.ttl));
    }
    guarantees.cautions.extend(config.open_login());
    Ok(ZkLock { sessions, guarantees })
}

#[async_trait]
impl DistributedLock for ZkLock {
    fn guarantees(&self) -> &Guarantees {
        &self.guarantees
    }

    fn clock(&self) -> Clock {
        Clock::Boot
    }

    fn reach(&self) -> Option<Reach> {
        Some(self.sessions.route.reach.clone())
    }

    async fn acquire(&self, request: Request, attempt: Attempt) -> Result<Box<dyn Lease>> {
        let directory = self.sessions.config.directory(&request.name)?;
        let session = self.session(request.ttl, &attempt).await?;
        let acquire = Acquire::new(session, directory, request, attempt.clone());
        match acquire.run().await {
            Err(_) if acquire.may_begin_again() => {
                let session = self.session(acquire.attempt.request.ttl, &attempt).await?;
                Box::pin(acquire.again(session).run()).await
            }
            result => result,
        }
    }

    async fn try_all(&self, wishes: Vec<Wish>) -> Result<Option<Vec<Box<dyn Lease>>>> {
        only_exclusive(STORE, &wishes)?;
        let ttl = wishes.iter().map(|(request, _)| request.ttl).min();
        let (Some(ttl), Some((_, caller))) = (ttl, wishes.first().cloned()) else {
            return Ok(Some(Vec::new()));
        };
        let set = self.set(ttl, &caller, &wishes).await?;
        match set.run().await {
            Err(_) if set.may_begin_again() => {
                self.set(ttl, &caller, &wishes).await?.again().run().await
            }
            result => result,
        }
    }

    async fn inspect(&self, name: &LockName) -> Result<Vec<Entry>> {
        let directory = &self.sessions.config.directory(name)?;
        self.ask(|session| async move { inspect(&session, directory).await }).await
    }

    async fn diagnose(&self, name: &LockName, attempts: &[Uuid]) -> Result<Diagnosis> {
        let directory = &self.sessions.config.directory(name)?;
        self.ask(|session| async move { diagnose(&session, directory, attempts).await }).await
    }

    async fn observe(&self, name: &LockName) -> Result<mpsc::Receiver<Observed>> {
        let directory = &self.sessions.config.directory(name)?;
        self.ask(|session| observe(&self.sessions, session, directory)).await
    }

    async fn names(&self, prefix: &str) -> Result<Vec<LockName>> {
        self.ask(|session| async move { operators::names(&session, prefix).await }).await
    }

    async fn revoke(&self, name: &LockName, attempt: Uuid) -> Result<bool> {
        let directory = &self.sessions.config.directory(name)?;
        // A raise of the floor may end the session that has deleted it; the next one finds none.
        let found = &AtomicBool::new(false);
        let revoke =
            |session: Arc<Session>| async move { session.revoke(directory, attempt, found).await };
        self.ask(revoke).await?;
        Ok(found.load(Relaxed))
    }

    async fn token_floor(&self) -> Result<TokenFloor> {
        self.ask(|session| async move { session.token_floor().await }).await
    }

    async fn raise_token_floor(&self, above: FencingToken) -> Result<TokenFloor> {
        self.ask(|session| async move { session.raise_floor(above).await }).await?;
        self.token_floor().await
    }

    async fn below_token_floor(&self, _: TokenFloor) -> Result<Vec<(LockName, Uuid)>> {
        self.ask(|session| async move { session.before_floor().await }).await
    }

    async fn mark(&self, name: &LockName) -> Result<Option<Mark>> {
        self.ask(|session| async move { session.mark_of(name).await }).await
    }

    async fn marks(&self, prefix: &str) -> Result<Vec<(LockName, Mark)>> {
        let marks = self.ask(|session| async move { session.all_marks().await }).await?;
        let present = |(name, dated): (LockName, Dated)| {
            let fits = name.as_str().starts_with(prefix) && !dated.has_ended;
            fits.then_some((name, dated.mark))
        };
        Ok(marks.into_iter().filter_map(present).collect())
    }

    async fn clear_mark(&self, name: &LockName) -> Result<bool> {
        self.ask(|session| async move { session.clear_mark(name).await }).await
    }

    async fn close(&self) -> Result<()> {
        self.sessions.close().await
    }
}
