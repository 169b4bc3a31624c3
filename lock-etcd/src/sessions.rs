//! The sessions of a client: one for each TTL in use.

use std::{
    collections::HashMap,
    sync::{
        Arc, Mutex, MutexGuard, PoisonError,
        atomic::{AtomicBool, Ordering},
    },
    time::Duration,
};

use futures_util::future::join_all;
use lock_core::{Clock, Effect, Error, Instant, LossReason, Result};
use tokio::{sync::Notify, task::JoinHandle};
use uuid::Uuid;

use crate::{
    config::whole_seconds,
    connection::Connection,
    error::{Failure, STORE},
    requests,
    session::Session,
};

/// How many different TTLs a client may use at a time.
const MOST: usize = 64;

/// A retired session is filed under its lease with this bit, which no TTL has.
const RETIRED: u64 = 1 << 63;

/// One etcd lease for each TTL in use, made when it is first asked for.
#[derive(Debug)]
pub(crate) struct Sessions {
    live: Mutex<HashMap<u64, Arc<Session>>>,
    granting: tokio::sync::Mutex<()>,
    closed: AtomicBool,
    /// Ends when the lease that connecting needed is revoked.
    probe: tokio::sync::Mutex<Option<JoinHandle<()>>>,
    /// Wakes the keep-alive.
    pub(crate) work: Notify,
    connection: Arc<Connection>,
}

impl Sessions {
    pub(crate) fn new(connection: Arc<Connection>, probe: JoinHandle<()>) -> Self {
        Self {
            live: Mutex::default(),
            granting: tokio::sync::Mutex::new(()),
            closed: AtomicBool::new(false),
            probe: tokio::sync::Mutex::new(Some(probe)),
            work: Notify::new(),
            connection,
        }
    }

    fn live(&self) -> MutexGuard<'_, HashMap<u64, Arc<Session>>> {
        // Nothing panics while it holds this lock.
        self.live.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// All sessions.
    pub(crate) fn all(&self) -> Vec<Arc<Session>> {
        self.live().values().cloned().collect()
    }

    pub(crate) fn by_lease(&self, lease: i64) -> Option<Arc<Session>> {
        self.live().values().find(|session| session.lease == lease).cloned()
    }

    /// Fails once the client is closed.
    pub(crate) fn check_open(&self) -> Result<()> {
        match self.closed.load(Ordering::Acquire) {
            true => Err(Error::Closed { store: STORE }),
            false => Ok(()),
        }
    }

    fn find(&self, seconds: u64) -> Option<Arc<Session>> {
        self.live().get(&seconds).filter(|session| session.is_live()).cloned()
    }

    /// The session for a TTL. `give_up`: the caller has left.
    pub(crate) async fn get(
        &self,
        ttl: Duration,
        give_up: impl Fn() -> bool,
    ) -> Result<Arc<Session>> {
        self.check_open()?;
        let seconds = whole_seconds("ttl", ttl)?;
        match self.find(seconds) {
            Some(session) => Ok(session),
            None => Box::pin(self.make(ttl, seconds, give_up)).await,
        }
    }

    async fn make(
        &self,
        ttl: Duration,
        seconds: u64,
        give_up: impl Fn() -> bool,
    ) -> Result<Arc<Session>> {
        let _one_at_a_time = self.granting.lock().await;
        self.check_open()?;
        if let Some(session) = self.find(seconds) {
            return Ok(session);
        }
        self.make_room(seconds)?;
        let session = Arc::new(self.grant(ttl, seconds, give_up).await?);
        self.live().insert(seconds, session.clone());
        if let Err(closed) = self.check_open() {
            self.end(&session, LossReason::SessionEnded);
            return Err(closed);
        }
        self.work.notify_one();
        Ok(session)
    }

    async fn grant(
        &self,
        ttl: Duration,
        seconds: u64,
        give_up: impl Fn() -> bool,
    ) -> Result<Session> {
        let lease = new_lease();
        let sent = Clock::Boot.now();
        let give_up = || give_up() || Clock::Boot.now() >= sent + ttl;
        let granted = requests::grant(&self.connection, lease, seconds, give_up);
        // etcd does both at once: it is no longer under way than one of them.
        let (granted, ()) = tokio::join!(granted, self.probed());
        // An unanswered grant needs no cleaning up: nobody renews it.
        let granted = granted.map_err(|failure| failure.into_error("acquire", false))?;
        if let Some(granted) = granted.filter(|granted| *granted != seconds) {
            let session = Session::new(lease, ttl, sent);
            self.end(&Arc::new(session), LossReason::SessionEnded);
            return Err(Error::InvalidOption {
                option: "ttl".to_owned(),
                value: format!("{ttl:?}"),
                allowed: format!("this etcd grants {granted}s and more"),
            });
        }
        Ok(Session::new(lease, ttl, sent))
    }

    /// Ends an idle session if there are too many.
    fn make_room(&self, seconds: u64) -> Result<()> {
        let mut live = self.live();
        if live.len() < MOST || live.contains_key(&seconds) {
            return Ok(());
        }
        // Sessions are handed out under this lock only, so one that nobody else has is idle.
        let idle = live.iter().find(|(_, session)| Arc::strong_count(session) == 1);
        let Some(idle) = idle.map(|(seconds, _)| *seconds) else {
            return Err(Error::InvalidOption {
                option: "ttl".to_owned(),
                value: format!("{seconds}s"),
                allowed: format!("{MOST} other TTLs are in use, and a client takes no more"),
            });
        };
        let session = live.remove(&idle);
        drop(live);
        if let Some(session) = session {
            self.end(&session, LossReason::SessionEnded);
        }
        Ok(())
    }

    /// No attempt begins in this session any more. It is renewed as long as some live by it.
    pub(crate) fn retire(&self, session: &Arc<Session>) {
        session.set_retired();
        let mut live = self.live();
        let seconds = session.ttl.as_secs();
        if live.get(&seconds).is_some_and(|live| Arc::ptr_eq(live, session)) {
            live.remove(&seconds);
            live.insert(session.lease.unsigned_abs() | RETIRED, session.clone());
        }
    }

    /// Nothing lives by a retired session any more.
    pub(crate) fn end_unused(&self, session: &Arc<Session>) {
        self.end(session, LossReason::SessionEnded);
    }

    /// Ends the sessions whose deadline has passed.
    pub(crate) fn expire(&self, now: Instant) {
        for session in self.all() {
            if now >= session.until() {
                self.end(&session, LossReason::Expired);
            }
        }
    }

    /// etcd said that a lease is gone.
    pub(crate) fn gone(&self, session: &Arc<Session>) {
        session.set_gone();
        self.end(session, LossReason::SessionEnded);
    }

    /// Ends a session by our own decision or etcd's, and makes sure that its lease ends, too.
    fn end(&self, session: &Arc<Session>, reason: LossReason) {
        let first = session.end(reason);
        self.live().retain(|_, live| !Arc::ptr_eq(live, session));
        if first && !session.is_gone() {
            let (connection, session) = (self.connection.clone(), session.clone());
            tokio::spawn(async move { drop(revoke(&connection, &session).await) });
        }
    }

    /// Waits until nothing of connecting is left.
    async fn probed(&self) {
        if let Some(probe) = self.probe.lock().await.take() {
            drop(probe.await);
        }
    }

    /// Ends all sessions, and none is made any more. Returns when etcd has confirmed.
    pub(crate) async fn close(&self) -> Result<()> {
        self.closed.store(true, Ordering::Release);
        let sessions: Vec<_> = self.live().drain().map(|(_, session)| session).collect();
        for session in &sessions {
            session.end(LossReason::SessionEnded);
        }
        let revoked = sessions.iter().map(|session| revoke(&self.connection, session));
        let revoked = join_all(revoked.collect::<Vec<_>>());
        let (revoked, ()) = tokio::join!(revoked, self.probed());
        let confirmed: Result<(), Failure> = revoked.into_iter().collect();
        confirmed.map_err(|failure| match failure.into_error("close", false) {
            Error::Unavailable { store, op, source, .. } => {
                Error::Unavailable { store, op, effect: Effect::Unknown, source }
            }
            error => error,
        })
    }
}

async fn revoke(connection: &Connection, session: &Session) -> Result<(), Failure> {
    requests::revoke(connection, session.lease, || session.is_over()).await?;
    session.set_gone();
    Ok(())
}

/// A lease id that nobody else has: 63 random bits. etcd's own ids are no better.
pub(crate) fn new_lease() -> i64 {
    let (high, low) = Uuid::new_v4().as_u64_pair();
    // The fixed bits of a UUID stand in the middle; folding hides them.
    let id = (high ^ low.rotate_left(32)) >> 1;
    i64::try_from(id).unwrap_or(i64::MAX).max(1)
}
