//! One attempt from its first request to its end: what is known of it.

use std::{
    sync::{Arc, Mutex, MutexGuard, OnceLock, PoisonError},
    time::Duration,
};

use lock_core::{
    Instant, Kind, LockName, LossReason, Request, Term, Validity, deadline::safe_until,
};
use tokio::sync::Notify;
use uuid::Uuid;

use crate::{layout::dialect::Dialect, wire::clock::CLOCK};

/// An attempt that this client makes, waits with, or holds a lock by.
#[derive(Debug)]
pub(crate) struct Attempt {
    pub(crate) id: Uuid,
    pub(crate) name: LockName,
    pub(crate) ttl: Duration,
    pub(crate) term: Term,
    /// How often it is renewed.
    pub(crate) period: Duration,
    /// Whether it has a value.
    pub(crate) leads: bool,
    /// As what it entered.
    pub(crate) kind: Kind,
    /// When it was found out that it is granted, unless its first request has said so.
    granted: OnceLock<Instant>,
    stage: Mutex<Stage>,
    moved: Notify,
}

#[derive(Debug)]
enum Stage {
    /// Its first request is on its way.
    Asking,
    /// It waits, as confirmed by a request that was sent at `sent`.
    Waiting { sent: Instant, token: u64 },
    /// It was granted; nobody has taken note yet.
    Granted { sent: Instant, token: u64 },
    /// It holds, as confirmed by a request that was sent at `sent`.
    Held { sent: Instant, validity: Validity },
    /// It is over.
    Over(End),
}

#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub(crate) enum End {
    /// The database does not have it any more.
    Gone,
    Unreachable,
    Closed,
}

impl Attempt {
    pub(crate) fn new(
        dialect: Dialect,
        request: &Request,
        caller: &lock_core::Attempt,
    ) -> Arc<Self> {
        Arc::new(Self {
            id: caller.id(),
            name: request.name.clone(),
            ttl: request.ttl,
            term: request.term,
            period: match dialect {
                Dialect::Postgres => request.ttl / 3,
                // Nobody tells the client that somebody has revoked its lock: it must ask.
                Dialect::Sqlite | Dialect::MySql => request.ttl / 8,
            },
            leads: request.value.is_some(),
            kind: request.kind,
            granted: OnceLock::new(),
            stage: Mutex::new(Stage::Asking),
            moved: Notify::new(),
        })
    }

    fn stage(&self) -> MutexGuard<'_, Stage> {
        // Nothing panics while it holds this.
        self.stage.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// How long one request about this attempt waits for its answer.
    pub(crate) fn patience(&self) -> Duration {
        (self.ttl / 3).clamp(Duration::from_millis(100), Duration::from_secs(2))
    }

    /// The database says that the attempt is in the queue.
    pub(crate) fn waits(&self, sent: Instant, token: u64) {
        let mut stage = self.stage();
        if let Stage::Asking = &*stage {
            *stage = Stage::Waiting { sent, token };
        }
    }

    pub(crate) fn is_waiting(&self) -> bool {
        matches!(&*self.stage(), Stage::Waiting { .. })
    }

    /// Its place among those who wait.
    pub(crate) fn waiting_token(&self) -> Option<u64> {
        match &*self.stage() {
            Stage::Waiting { token, .. } => Some(*token),
            _ => None,
        }
    }

    /// The database says that nobody is before it any more whom it would have to wait for.
    pub(crate) fn admitted(&self) {
        let mut stage = self.stage();
        if let Stage::Waiting { sent, token } = &*stage {
            self.found_granted();
            *stage = Stage::Granted { sent: *sent, token: *token };
            self.moved.notify_one();
        }
    }

    /// Nobody is before it any more, and its row does not say so.
    pub(crate) fn found_granted(&self) {
        self.granted.get_or_init(|| CLOCK.now());
    }

    pub(crate) fn granted(&self) -> Option<Instant> {
        self.granted.get().copied()
    }

    /// A renewal that was sent at `confirmed` has found it alive.
    pub(crate) fn renewed(&self, confirmed: Instant) {
        match &mut *self.stage() {
            Stage::Waiting { sent, .. } | Stage::Granted { sent, .. } => {
                *sent = confirmed.max(*sent)
            }
            Stage::Held { sent, validity } => {
                *sent = confirmed.max(*sent);
                validity.extend(safe_until(confirmed, self.ttl));
            }
            Stage::Asking | Stage::Over(_) => {}
        }
    }

    /// The database does not have the attempt any more, or only as one that has expired.
    pub(crate) fn gone(&self) {
        let mut stage = self.stage();
        match &*stage {
            Stage::Held { validity, .. } => drop(validity.lose(LossReason::EntryGone)),
            Stage::Over(_) => {}
            _ => {
                *stage = Stage::Over(End::Gone);
                self.moved.notify_one();
            }
        }
    }

    /// Ends the wait if the database has not answered for a TTL: it has forgotten the attempt.
    pub(crate) fn expire_wait(&self, now: Instant) {
        let mut stage = self.stage();
        if matches!(&*stage, Stage::Waiting { sent, .. } if now.since(*sent) >= self.ttl) {
            *stage = Stage::Over(End::Unreachable);
            self.moved.notify_one();
        }
    }

    /// The client is closed: every lock that it holds is free, and nobody waits any more.
    pub(crate) fn closed(&self) {
        let stage = std::mem::replace(&mut *self.stage(), Stage::Over(End::Closed));
        if let Stage::Held { validity, .. } = stage {
            validity.lose(LossReason::Closed);
        }
        self.moved.notify_one();
    }

    /// Whether a renewal that is due concerns it. A lock that was confirmed just now waits for the
    /// next one, so that short holds are never renewed.
    pub(crate) fn is_renewed(&self, now: Instant) -> bool {
        match &*self.stage() {
            Stage::Waiting { .. } => true,
            Stage::Held { sent, validity } => {
                self.term == Term::Renewed
                    && !validity.has_ended()
                    && now.since(*sent) >= self.period / 2
            }
            _ => false,
        }
    }

    pub(crate) fn is_held(&self) -> bool {
        matches!(&*self.stage(), Stage::Held { .. })
    }

    /// Takes note of a grant: from now on it is held, and renewed.
    ///
    /// # Errors
    ///
    /// How it has ended meanwhile.
    pub(crate) fn hold(&self, sent: Instant) -> Result<Validity, End> {
        let mut stage = self.stage();
        if let Stage::Over(end) = &*stage {
            return Err(*end);
        }
        let validity = Validity::new(&self.name, safe_until(sent, self.ttl));
        *stage = Stage::Held { sent, validity: validity.clone() };
        Ok(validity)
    }

    /// Waits until the attempt is granted or over.
    pub(crate) async fn decided(&self) -> Result<(Instant, u64), End> {
        loop {
            match &*self.stage() {
                Stage::Granted { sent, token } => return Ok((*sent, *token)),
                Stage::Over(end) => return Err(*end),
                _ => {}
            }
            // A permit is kept for a notification that comes before this.
            self.moved.notified().await;
        }
    }
}
