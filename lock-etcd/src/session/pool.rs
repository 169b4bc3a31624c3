//! The sessions of a client: one for each TTL in use.

use std::{
    sync::{Arc, Weak},
    time::Duration,
};

use futures_util::future::join_all;
use lock_core::{
    Attempt, Clock, Error, Instant, LossReason, Result, Wait,
    duration::shown,
    keep::{
        errors::invalid,
        pool::{Found, Maker, Pool, Pooled, other_ttl},
    },
};
use tokio::task::JoinHandle;
use tokio_util::sync::CancellationToken;

use crate::{
    error::{Failure, FailureKind, STORE},
    layout::keys::Keys,
    session::{Session, end, key::make_key, renewal},
    wire::{
        connection::{BACKOFF, Connection, LONGEST_PAUSE},
        lanes::{Room, unsent},
        leases,
        member::ANSWER_LIMIT,
        requests::check_login,
    },
};

/// How many different TTLs a client may use at a time.
const MOST: usize = 64;

/// How long closing tries. Requests under way then end within [`ANSWER_LIMIT`] more, so nothing is
/// left when `Locks::close` returns, after at most 5 s.
const CLOSE_LIMIT: Duration = Duration::from_secs(3);

/// One etcd lease for each TTL in use, made when it is first asked for.
pub(crate) struct Sessions {
    layout: Keys,
    pool: Pool<Session, Failure>,
    closed: CancellationToken,
    /// Ends when the lease that connecting needed is revoked.
    probe: tokio::sync::Mutex<Option<JoinHandle<()>>>,
    pub(super) connection: Arc<Connection>,
}

impl Pooled for Session {
    fn ttl(&self) -> Duration {
        self.ttl
    }

    fn is_over(&self) -> bool {
        !self.is_live()
    }
}

impl Sessions {
    pub(crate) fn new(layout: &Keys, connection: Arc<Connection>, probe: JoinHandle<()>) -> Self {
        Self {
            layout: layout.clone(),
            pool: Pool::new(STORE, MOST),
            closed: CancellationToken::new(),
            probe: tokio::sync::Mutex::new(Some(probe)),
            connection,
        }
    }

    /// All sessions.
    pub(crate) fn all(&self) -> Vec<Arc<Session>> {
        self.pool.all()
    }

    /// Fails once the client is closed.
    pub(crate) fn check_open(&self) -> Result<()> {
        match self.closed.is_cancelled() {
            true => Err(Error::closed(STORE)),
            false => Ok(()),
        }
    }

    /// Returns the session for a TTL, and room for a request to enter in it, for a caller that asked
    /// at `asked`. Fails if etcd is out of reach for a TTL, or the caller has left.
    pub(crate) async fn get<'a>(
        self: &'a Arc<Self>,
        ttl: Duration,
        wait: Wait,
        attempt: &Attempt,
        asked: Instant,
    ) -> Result<(Arc<Session>, Option<Room<'a>>)> {
        whole_seconds("ttl", ttl)?;
        let until = || self.connection.patience(asked, ttl);
        loop {
            self.check_open()?;
            let session = match self.pool.get(ttl)? {
                Found::Open(session) => session,
                found => match Box::pin(self.made(ttl, found, attempt, until())).await? {
                    Some(session) => session,
                    None => continue,
                },
            };
            let room = self.connection.lanes.acquire(wait, attempt, until).await;
            let room = room.map_err(|failure| failure.into_error("acquire", false))?;
            // It may have waited for long.
            if session.is_live() && !session.is_retired() {
                return Ok((session, room));
            }
        }
    }

    /// Waits for the one attempt to make a session. Returns `None` if the task that was making it is
    /// gone, perhaps with its runtime.
    async fn made(
        self: &Arc<Self>,
        ttl: Duration,
        found: Found<Session, Failure>,
        attempt: &Attempt,
        until: Instant,
    ) -> Result<Option<Arc<Session>>> {
        let mut wait = match found {
            Found::Open(session) => return Ok(Some(session)),
            Found::Opening(wait) => wait,
            Found::Wanted { maker, wait, instead_of } => {
                if let Some(old) = instead_of {
                    // It is idle, or it has expired and its waiters do not know yet.
                    self.end(&old, LossReason::Expired);
                }
                tokio::spawn(self.clone().make(ttl, maker));
                wait
            }
        };
        let made = tokio::select! {
            biased;
            () = attempt.cancelled() => Some(Err(unsent("the caller has left"))),
            () = self.closed.cancelled() => return Err(Error::closed(STORE)),
            made = wait.outcome() => made,
            () = Clock::Boot.sleep_until(until) => {
                let silent = || Failure::silent(ttl.min(ANSWER_LIMIT));
                Some(Err(wait.last_failure().unwrap_or_else(silent)))
            }
        };
        match made {
            Some(Ok(session)) if session.ttl != ttl => Err(other_ttl(ttl, session.ttl)),
            Some(Ok(session)) => Ok(Some(session)),
            // If etcd made a lease all the same, it is not renewed, ends by itself, and locks
            // nothing.
            Some(Err(failure)) => Err(failure.without_effect().into_error("acquire", false)),
            None => {
                tokio::select! {
                    () = attempt.cancelled() => {}
                    () = self.closed.cancelled() => {}
                    () = tokio::time::sleep(LONGEST_PAUSE) => {}
                }
                Ok(None)
            }
        }
    }

    /// Makes a session as long as callers wait for it.
    async fn make(self: Arc<Self>, ttl: Duration, maker: Maker<Session, Failure>) {
        let made = tokio::select! {
            made = self.grant(ttl, &maker) => made,
            () = maker.deserted() => return,
        };
        let session = made.as_ref().ok().cloned();
        let filed = maker.done(made);
        match session {
            Some(session) if filed => {
                let ended = session.ended.clone();
                tokio::spawn(self.renew(Arc::downgrade(&session), ended));
            }
            // It has another TTL, or the client is closed.
            Some(session) => self.end(&session, LossReason::Closed),
            None => {}
        }
    }

    /// Asks for a lease and its key until etcd answers. Of an unanswered try, lease and key end by
    /// themselves. The session's time counts from the answered request for the lease.
    async fn grant(
        &self,
        ttl: Duration,
        maker: &Maker<Session, Failure>,
    ) -> Result<Arc<Session>, Failure> {
        let again = |failure: &Failure| {
            maker.failed(failure.clone());
            true
        };
        let grant = async {
            let mut pause = BACKOFF;
            loop {
                let (lease, ttl, sent) = leases::grant(&self.connection, ttl, again).await?;
                match make_key(&self.connection, &self.layout, lease).await {
                    Ok((made, floor)) => {
                        return Ok(Session::new(lease, ttl, sent, made, floor));
                    }
                    Err(failure) if failure.kind.is_passing() => again(&failure),
                    Err(failure) if failure.kind == FailureKind::LeaseGone => again(&failure),
                    Err(failure) => {
                        drop(leases::revoke(&self.connection, lease, &|| true).await);
                        return Err(failure);
                    }
                };
                pause.wait().await;
            }
        };
        // etcd does both at once, so it takes no longer than one of them.
        let (granted, ()) = tokio::join!(grant, self.probed());
        granted.map(Arc::new)
    }

    /// Retires the session: no attempt begins in it any more. It is renewed as long as attempts
    /// live by it.
    pub(crate) fn retire(&self, session: &Arc<Session>) {
        session.set_retired();
        self.pool.retire(session);
    }

    /// Renews a session until it has ended.
    async fn renew(self: Arc<Self>, session: Weak<Session>, ended: CancellationToken) {
        let has_expired = tokio::select! {
            biased;
            () = ended.cancelled() => return,
            () = renewal::expired(&session) => true,
            () = renewal::renew(&self.connection, &session) => false,
        };
        match session.upgrade() {
            Some(session) if has_expired => self.end(&session, LossReason::Expired),
            // etcd has said that its lease is gone.
            Some(session) => {
                session.set_gone();
                self.end(&session, LossReason::SessionEnded);
            }
            None => {}
        }
    }

    /// Ends a session by our own decision or etcd's, and makes sure that its lease ends, too.
    pub(crate) fn end(&self, session: &Arc<Session>, reason: LossReason) {
        let first = session.end(reason);
        self.pool.forget(session);
        if first && !session.is_gone() {
            let (connection, session) = (self.connection.clone(), session.clone());
            tokio::spawn(async move { end::revoke_in_time(&connection, &session).await });
        }
    }

    /// Finds out whether the member lives while it does not answer a request, as long as this is
    /// polled. For each late request a keep-alive is sent. A client that has nothing to renew now
    /// asks the member, beside what it does here: a keep-alive may be answered although a question
    /// is not.
    pub(crate) async fn check_late_requests(&self) {
        loop {
            self.connection.health.late.notified().await;
            // A denied session sends its keep-alives later, and gets no answer that counts.
            match self.all().iter().find(|session| session.stood_still()) {
                Some(session) => session.hurry(),
                None => drop(tokio::spawn(ask(self.connection.clone()))),
            }
        }
    }

    /// Waits until the lease that connecting needed is revoked.
    async fn probed(&self) {
        if let Some(probe) = self.probe.lock().await.take() {
            drop(probe.await);
        }
    }

    /// Ends all sessions and makes none any more. Returns when etcd has confirmed, or after
    /// [`CLOSE_LIMIT`]; nothing is tried again after that.
    pub(crate) async fn close(&self) -> Result<()> {
        self.closed.cancel();
        let sessions = self.pool.close();
        for session in &sessions {
            session.end(LossReason::Closed);
        }
        let revoked = sessions.iter().map(|session| end::revoke(&self.connection, session));
        let revoked = join_all(revoked.collect::<Vec<_>>());
        let revoked =
            Clock::Boot.timeout(CLOSE_LIMIT, async { tokio::join!(revoked, self.probed()) }).await;
        self.connection.closed.cancel();
        let closed: Result<(), Failure> = match revoked {
            Some((revoked, ())) => revoked.into_iter().collect(),
            None => Err(Failure::silent(CLOSE_LIMIT)),
        };
        closed.map_err(|failure| {
            let in_doubt = failure.kind != FailureKind::Rejected;
            failure.into_error("close", in_doubt)
        })
    }
}

/// Checks that a TTL is in whole seconds. etcd counts TTLs so, and rounding would break the promise.
pub(crate) fn whole_seconds(option: &str, ttl: Duration) -> Result<()> {
    if ttl.subsec_nanos() == 0 {
        return Ok(());
    }
    Err(invalid(option, shown(ttl), "etcd counts TTLs in whole seconds"))
}

/// Asks the member whether it lives.
async fn ask(connection: Arc<Connection>) {
    let member = connection.member();
    let answer =
        Box::pin(Clock::Boot.timeout(connection.limits.request / 2, check_login(&member))).await;
    if matches!(answer, Some(Ok(()))) && connection.member().generation == member.generation {
        connection.health.lives();
    }
}
