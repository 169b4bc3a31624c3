//! The sessions of a client: one for each TTL in use.

use std::{
    collections::HashMap,
    sync::{Arc, Mutex, MutexGuard, PoisonError},
    time::Duration,
};

use futures_util::future::join_all;
use lock_core::{Attempt, Clock, Effect, Error, Instant, LossReason, Result, duration::shown};
use tokio::{
    sync::{Notify, watch},
    task::JoinHandle,
    time::timeout,
};
use tokio_util::sync::CancellationToken;

use crate::{
    config::whole_seconds,
    error::{Failure, STORE},
    session::{
        Session, end,
        making::{Made, Making},
    },
    wire::{
        backoff::Pause,
        connection::Connection,
        leases::{self, new_lease},
        member::ANSWER_LIMIT,
        turns::unsent,
    },
};

/// How many different TTLs a client may use at a time.
const MOST: usize = 64;

/// How long closing tries. What is under way then ends within [`ANSWER_LIMIT`] more, so that
/// nothing is left when `Locks::close` returns, after at most 5 s.
const CLOSE_LIMIT: Duration = Duration::from_secs(3);

/// A retired session is filed under its lease with this bit, which no TTL has.
const RETIRED: u64 = 1 << 63;

/// One etcd lease for each TTL in use, made when it is first asked for.
#[derive(Debug)]
pub(crate) struct Sessions {
    live: Mutex<HashMap<u64, Arc<Session>>>,
    making: Arc<Making>,
    closed: CancellationToken,
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
            making: Arc::default(),
            closed: CancellationToken::new(),
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
        match self.closed.is_cancelled() {
            true => Err(Error::closed(STORE)),
            false => Ok(()),
        }
    }

    fn find(&self, seconds: u64) -> Option<Arc<Session>> {
        self.live().get(&seconds).filter(|session| session.is_live()).cloned()
    }

    /// The session for a TTL, for a caller that asked at `asked`.
    ///
    /// # Errors
    ///
    /// [`Error::Unavailable`] if etcd is out of reach for a TTL, or the caller has left.
    pub(crate) async fn get(
        self: &Arc<Self>,
        ttl: Duration,
        attempt: &Attempt,
        asked: Instant,
    ) -> Result<Arc<Session>> {
        self.check_open()?;
        let seconds = whole_seconds("ttl", ttl)?;
        match self.find(seconds) {
            Some(session) => Ok(session),
            None => Box::pin(self.make(ttl, seconds, attempt, asked)).await,
        }
    }

    /// Waits for the one attempt to make it, and no longer than a TTL.
    async fn make(
        self: &Arc<Self>,
        ttl: Duration,
        seconds: u64,
        attempt: &Attempt,
        asked: Instant,
    ) -> Result<Arc<Session>> {
        self.make_room(seconds)?;
        let until = self.connection.patience(asked, ttl);
        let mut pause = Pause::new();
        let made = loop {
            let mut told = self.join(ttl, seconds);
            let ended = tokio::select! {
                biased;
                () = attempt.cancelled() => {
                    return Err(unsent("the caller has left").into_error("acquire", false));
                }
                () = self.closed.cancelled() => return Err(Error::closed(STORE)),
                made = told.wait_for(Made::is_done) => made.is_err(),
                () = Clock::Boot.sleep_until(until) => false,
            };
            if !ended {
                break told.borrow().clone();
            }
            // Whoever made it is gone, perhaps with its runtime.
            pause.wait().await;
        };
        let failure = match made {
            Made::Session(session) => return Ok(session),
            Made::OtherTtl(granted) => {
                return Err(Error::InvalidOption {
                    option: "ttl".to_owned(),
                    value: shown(ttl).to_string(),
                    allowed: format!("this etcd grants {granted}s and more"),
                });
            }
            Made::Failed(failure) | Made::NotYet(Some(failure)) => failure,
            Made::NotYet(None) => Failure::silent(ttl.min(ANSWER_LIMIT)),
        };
        // A lease that etcd made all the same is not renewed, ends by itself, and locks nothing.
        Err(failure.without_effect().into_error("acquire", false))
    }

    /// Joins the attempt that is under way, or begins it.
    fn join(self: &Arc<Self>, ttl: Duration, seconds: u64) -> watch::Receiver<Made> {
        let (told, maker) = self.making.join(seconds);
        if let Some(maker) = maker {
            let sessions = self.clone();
            tokio::spawn(async move {
                let mut granting = std::pin::pin!(sessions.grant(ttl, seconds, &maker.tell));
                let made = loop {
                    tokio::select! {
                        made = &mut granting => break made,
                        () = maker.tell.closed() => {
                            if maker.is_deserted() {
                                return;
                            }
                        }
                    }
                };
                maker.done(made);
            });
        }
        told
    }

    /// Asks for a lease until etcd answers, with another id each time: so what an unanswered
    /// request makes is nobody's, and the session's time counts from the request that was answered.
    async fn grant(
        self: &Arc<Self>,
        ttl: Duration,
        seconds: u64,
        tell: &watch::Sender<Made>,
    ) -> Made {
        let mut pause = Pause::new();
        loop {
            let (lease, sent) = (new_lease(), Clock::Boot.now());
            let granted = self.connection.call(|member| leases::send_grant(member, lease, seconds));
            // etcd does both at once: it is no longer under way than one of them.
            let (granted, ()) = tokio::join!(granted, self.probed());
            match granted {
                Ok(granted) => return self.granted(Session::new(lease, ttl, sent), granted),
                Err(failure) if failure.kind.is_passing() => {
                    tell.send_replace(Made::NotYet(Some(failure)));
                }
                Err(failure) => return Made::Failed(failure),
            }
            pause.wait().await;
        }
    }

    fn granted(self: &Arc<Self>, session: Session, seconds: u64) -> Made {
        let session = Arc::new(session);
        if seconds != session.ttl.as_secs() {
            self.end(&session, LossReason::SessionEnded);
            return Made::OtherTtl(seconds);
        }
        let old = self.live().insert(seconds, session.clone());
        if let Some(old) = old {
            // Its time was over, and its waiters have not been told yet.
            self.end(&old, LossReason::Expired);
        }
        if self.check_open().is_err() {
            self.end(&session, LossReason::Closed);
        }
        self.work.notify_one();
        Made::Session(session)
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

    /// As [`gone`](Self::gone), of a session that may have ended before it was asked.
    pub(crate) fn gone_unless_ended(&self, session: &Arc<Session>) {
        if !session.ended.is_cancelled() {
            self.gone(session);
        }
    }

    /// Ends a session by our own decision or etcd's, and makes sure that its lease ends, too.
    fn end(&self, session: &Arc<Session>, reason: LossReason) {
        let first = session.end(reason);
        self.live().retain(|_, live| !Arc::ptr_eq(live, session));
        if first && !session.is_gone() {
            let (connection, session) = (self.connection.clone(), session.clone());
            tokio::spawn(async move { drop(end::revoke(&connection, &session).await) });
        }
    }

    /// Waits until nothing of connecting is left.
    async fn probed(&self) {
        if let Some(probe) = self.probe.lock().await.take() {
            drop(probe.await);
        }
    }

    /// Ends all sessions, and none is made any more. Returns when etcd has confirmed, or after
    /// [`CLOSE_LIMIT`]; nothing is tried again after that.
    pub(crate) async fn close(&self) -> Result<()> {
        self.closed.cancel();
        let sessions: Vec<_> = self.live().drain().map(|(_, session)| session).collect();
        for session in &sessions {
            session.end(LossReason::Closed);
        }
        let revoked = sessions.iter().map(|session| end::revoke(&self.connection, session));
        let revoked = join_all(revoked.collect::<Vec<_>>());
        let revoked = timeout(CLOSE_LIMIT, async { tokio::join!(revoked, self.probed()) }).await;
        self.connection.close();
        let confirmed: Result<(), Failure> = match revoked {
            Ok((revoked, ())) => revoked.into_iter().collect(),
            Err(_) => Err(Failure::silent(CLOSE_LIMIT)),
        };
        confirmed.map_err(|failure| match failure.into_error("close", false) {
            Error::Unavailable { store, op, source, .. } => {
                Error::Unavailable { store, op, effect: Effect::Unknown, source }
            }
            error => error,
        })
    }
}
