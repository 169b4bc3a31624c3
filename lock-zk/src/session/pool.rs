//! A client's sessions: one per TTL, since ZooKeeper's timeout belongs to the session.

use std::{ops::RangeInclusive, sync::Arc, time::Duration};

use lock_core::{
    Clock, Effect, Error, Result,
    duration::shown,
    keep::{
        errors::{again, invalid, shared},
        pool::{Found, Maker, Pool, Pooled, other_ttl},
    },
};
use tokio::{runtime::Handle, sync::Notify};
use tokio_util::sync::CancellationToken;
use zookeeper_client::{Client, Error as ZkError};

use crate::{
    config::ZkConfig,
    error::{self, STORE},
    session::{Session, deletions, deployment, janitor, renewal},
    wire::{nodelay, route::Route},
};

/// More distinct TTLs than a program needs; each costs a connection and a renewal.
const MOST_SESSIONS: usize = 8;

/// A client's sessions.
#[derive(Debug)]
pub(crate) struct Sessions {
    pub(crate) config: Arc<ZkConfig>,
    pub(crate) route: Arc<Route>,
    tick: Duration,
    pub(crate) runtime: Handle,
    pool: Pool<Session, Arc<Error>>,
    /// Cancelled when the client is closed or dropped, for background tasks.
    pub(crate) closed: CancellationToken,
}

impl Pooled for Session {
    fn ttl(&self) -> Duration {
        Self::ttl(self)
    }

    fn is_over(&self) -> bool {
        Self::is_over(self)
    }
}

impl Sessions {
    /// Makes a pool without sessions. Their tasks will run in the current runtime. `tick` is that
    /// of the servers, or longer.
    pub(crate) fn new(route: Route, tick: Duration) -> Arc<Self> {
        Arc::new(Self {
            config: route.config.clone(),
            route: Arc::new(route),
            tick,
            runtime: Handle::current(),
            pool: Pool::new(STORE, MOST_SESSIONS),
            closed: CancellationToken::new(),
        })
    }

    /// Returns the live session of a TTL; opens one if there is none.
    pub(crate) async fn get(self: &Arc<Self>, ttl: Duration) -> Result<Arc<Session>> {
        // The server counts in milliseconds.
        let ttl = Duration::from_millis(u64::try_from(ttl.as_millis()).unwrap_or(u64::MAX));
        let mut wait = match self.pool.get(ttl)? {
            Found::Open(session) => return Ok(session),
            Found::Opening(wait) => wait,
            Found::Wanted { maker, wait, .. } => {
                self.open(ttl, maker);
                wait
            }
        };
        // Boxed, since almost every call finds a session.
        match Box::pin(wait.outcome()).await {
            Some(Ok(session)) if session.ttl() != ttl => Err(other_ttl(ttl, session.ttl())),
            Some(Ok(session)) => Ok(session),
            Some(Err(error)) => Err(again(&error)),
            // The client is closed, or dropped, or its runtime is gone.
            None => Err(Error::closed(STORE)),
        }
    }

    /// Returns any live session, for requests that hold nothing; opens one of this TTL if there is
    /// none.
    pub(crate) async fn any(self: &Arc<Self>, ttl: Duration) -> Result<Arc<Session>> {
        if let Some(session) = self.pool.any() { Ok(session) } else { self.get(ttl).await }
    }

    /// Ends all sessions, and lets no new ones begin.
    pub(crate) async fn close(&self) -> Result<()> {
        self.closed.cancel();
        let open = self.pool.close();
        let ends = futures_util::future::join_all(open.iter().map(|session| session.close()));
        ends.await.into_iter().collect()
    }

    /// Opens a session in a task of its own: the caller that asked first may leave.
    fn open(self: &Arc<Self>, ttl: Duration, maker: Maker<Session, Arc<Error>>) {
        let (weak, route) = (Arc::downgrade(self), self.route.clone());
        self.runtime.spawn(async move {
            let sent = Clock::Boot.now();
            let client = Clock::Boot
                .timeout(ttl, Box::pin(route.connect(ttl)))
                .await
                .unwrap_or(Err(ZkError::Timeout));
            let Some(sessions) = weak.upgrade() else { return };
            let opened = match client {
                Ok((client, login)) => sessions.start(client, login, sent).await,
                Err(ZkError::Timeout) => Err(sessions.silent(ttl)),
                Err(error) => Err(error::read_failed("connect", error)),
            };
            if opened.is_ok() {
                sessions.route.reach.works();
            }
            // A session that the pool does not take ends when its waiters have seen it.
            maker.done(opened.map_err(|error| Arc::new(shared(error))));
        });
    }

    fn silent(&self, ttl: Duration) -> Error {
        let source = format!("no server opened a session within {}", shown(ttl));
        error::unavailable("connect", Effect::None, self.route.with_failure(&source))
    }

    /// Starts the tasks of a session. They hold it weakly and end with it.
    async fn start(
        self: &Arc<Self>,
        client: Client,
        login: Option<String>,
        sent: lock_core::Instant,
    ) -> Result<Arc<Session>> {
        nodelay::set(&self.route.hosts).await;
        let states = client.state_watcher();
        let session = Session::new(client, login, self.route.clone(), self.tick, sent);
        let session = Arc::new(session);
        let weak = Arc::downgrade(&session);
        let reconnected = Arc::new(Notify::new());
        let (sessions, left) = (Arc::downgrade(self), session.left.clone());
        let retire = move |session: &Arc<Session>| {
            let _ = sessions.upgrade().map(|sessions| sessions.pool.retire(session));
        };
        self.spawn(&session, janitor::work(weak.clone(), retire, left));
        self.spawn(&session, renewal::renew(weak.clone(), reconnected.clone()));
        self.spawn(&session, deletions::watch(weak.clone(), session.unwatched.first.clone()));
        self.spawn(&session, deletions::look(weak.clone(), session.unwatched.crowded.clone()));
        // `renewal::follow` below is told of a break meanwhile.
        let asking = deployment::ask_deployment(weak.clone());
        let left = (sent + session.ttl()).since(Clock::Boot.now());
        let record = Clock::Boot.timeout(left, session.read_record());
        let asked = Box::pin(async { tokio::join!(asking, record).1 });
        let record = session.over.run_until_cancelled(asked).await;
        let record = record.ok_or_else(|| session.error("connect"))?;
        let changed = record.unwrap_or_else(|| Err(self.silent(session.ttl())))?;
        self.spawn(&session, Session::end_when_raised(weak.clone(), changed));
        self.runtime.spawn(renewal::follow(
            weak,
            states,
            session.terminated.clone(),
            reconnected,
            self.route.clone(),
        ));
        Ok(session)
    }

    /// Starts a task that ends with a session.
    fn spawn(&self, session: &Session, task: impl Future<Output = ()> + Send + 'static) {
        self.runtime.spawn(session.over.clone().run_until_cancelled_owned(task));
    }
}

impl Drop for Sessions {
    fn drop(&mut self) {
        self.closed.cancel();
    }
}

/// Checks that a client may use a TTL.
pub(crate) fn checked_ttl(ttl: Duration, range: &RangeInclusive<Duration>) -> Result<Duration> {
    if range.contains(&ttl) {
        return Ok(ttl);
    }
    let allowed = format!("this server takes {} to {}", shown(*range.start()), shown(*range.end()));
    Err(invalid("URL option ttl", shown(ttl), allowed))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_ttl_that_the_server_does_not_grant_is_refused_with_the_range() {
        let seconds = Duration::from_secs;
        let range = seconds(1)..=seconds(10);
        assert_eq!(checked_ttl(seconds(2), &range).unwrap(), seconds(2));
        let error = checked_ttl(seconds(11), &range).unwrap_err().to_string();
        assert!(error.contains("1s to 10s"), "{error}");
    }
}
