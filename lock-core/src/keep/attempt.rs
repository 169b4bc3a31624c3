//! One attempt from its first request to its end, as one state.
//!
//! Events of an attempt come from several sides: answers to its own requests, answers to renewals,
//! pushes of the store, a close, an operator. Some of them are late. So all of them go through one
//! mutex, and only an event that fits the present stage moves it.

use std::{sync::Mutex, time::Duration};

use tokio::sync::Notify;
use uuid::Uuid;

use crate::{
    Effect, Error, Instant, LockName, LossReason, Request, Term, Validity,
    duration::shown,
    keep::{errors::unavailable, poison::lock},
    validity::safe_until,
};

/// The stage of an attempt. The parameters are the driver's notes on an attempt that is asking
/// (`A`), waiting (`W`), or holding (`H`).
///
/// `sent` is the send time of the request that confirmed this last. It only moves forward.
#[derive(Debug)]
pub enum Stage<A = (), W = (), H = ()> {
    /// Its first request is on its way.
    Asking(A),
    /// The store has it in the queue.
    Waiting {
        /// See [`Stage`].
        sent: Instant,
        /// The driver's note.
        note: W,
    },
    /// It was granted, and its caller does not know yet.
    Granted {
        /// See [`Stage`].
        sent: Instant,
        /// The grant's fencing token.
        token: u64,
    },
    /// It holds the lock.
    Held {
        /// See [`Stage`].
        sent: Instant,
        /// Shared with the caller's guard.
        validity: Validity,
        /// The driver's note.
        note: H,
    },
    /// It has ended, before it held the lock or by a close.
    Over(End),
}

/// How an attempt ended.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub enum End {
    /// The store does not have it any more.
    Gone {
        /// How it was lost, as far as the driver knows.
        reason: LossReason,
    },
    /// The store has not answered for a TTL, so it has forgotten the attempt.
    Unreachable,
    /// The client was closed.
    Closed,
}

impl End {
    /// The store does not have an attempt with this TTL any more, as the driver learns at `now`. It
    /// has expired if the request that has found it last was `sent` a TTL before; else it was lost
    /// for this reason.
    pub fn gone(reason: LossReason, sent: Instant, ttl: Duration, now: Instant) -> Self {
        let has_expired = now.since(sent) >= ttl;
        Self::Gone { reason: if has_expired { LossReason::Expired } else { reason } }
    }

    /// The error for an attempt with this TTL that is over before it was held. The store's name
    /// comes with the name of the silent side: "the server".
    pub fn error(self, (store, peer): (&'static str, &str), ttl: Duration) -> Error {
        match self {
            Self::Closed => Error::closed(store),
            Self::Gone { reason } => Error::PlaceLost { store, name: None, reason },
            Self::Unreachable => {
                let silent = format!("{peer} did not answer for {}", shown(ttl));
                unavailable(store, "acquire", Effect::Unknown, silent)
            }
        }
    }
}

impl<A, W, H> Stage<A, W, H> {
    /// Whether the wait for the grant is decided.
    pub fn is_decided(&self) -> bool {
        matches!(self, Self::Granted { .. } | Self::Over(_))
    }

    /// A request that was sent at `confirmed` has found it alive. A held lock is valid for a TTL
    /// from then on.
    pub fn confirm(&mut self, confirmed: Instant, ttl: Duration) {
        match self {
            Self::Waiting { sent, .. } | Self::Granted { sent, .. } => *sent = confirmed.max(*sent),
            Self::Held { sent, validity, .. } => {
                *sent = confirmed.max(*sent);
                validity.extend(safe_until(confirmed, ttl));
            }
            Self::Asking(_) | Self::Over(_) => {}
        }
    }

    /// The store does not have it any more: see [`End::gone`]. A held lock is lost for the reason;
    /// any other attempt is over.
    pub fn gone(&mut self, reason: LossReason, ttl: Duration, now: Instant) {
        let end = match self {
            Self::Held { validity, .. } => {
                validity.lose(reason);
                return;
            }
            Self::Over(_) => return,
            Self::Asking(_) => End::Gone { reason },
            Self::Waiting { sent, .. } | Self::Granted { sent, .. } => {
                End::gone(reason, *sent, ttl, now)
            }
        };
        *self = Self::Over(end);
    }
}

/// An attempt as its client keeps it: its request, and its stage.
#[derive(Debug)]
pub struct Progress<A = (), W = (), H = ()> {
    /// The attempt's identity.
    pub id: Uuid,
    /// The lock's name.
    pub name: LockName,
    /// How long the store keeps it without a renewal.
    pub ttl: Duration,
    /// Whether it is renewed once it holds.
    pub term: Term,
    /// How often it is renewed.
    pub period: Duration,
    stage: Mutex<Stage<A, W, H>>,
    moved: Notify,
}

impl<A, W, H> Progress<A, W, H> {
    /// An attempt whose first request is about to be sent.
    pub fn new(id: Uuid, request: &Request, period: Duration, asking: A) -> Self {
        Self {
            id,
            name: request.name.clone(),
            ttl: request.ttl,
            term: request.term,
            period,
            stage: Mutex::new(Stage::Asking(asking)),
            moved: Notify::new(),
        }
    }

    /// How long one request about it waits for its answer: a third of the TTL, from 100 ms to 2 s.
    pub fn patience(&self) -> Duration {
        (self.ttl / 3).clamp(Duration::from_millis(100), Duration::from_secs(2))
    }

    /// Reads the stage.
    pub fn look<T>(&self, look: impl FnOnce(&Stage<A, W, H>) -> T) -> T {
        look(&lock(&self.stage))
    }

    /// Moves the stage, and wakes the caller if that decides its wait.
    pub fn change<T>(&self, change: impl FnOnce(&mut Stage<A, W, H>) -> T) -> T {
        let mut stage = lock(&self.stage);
        let before = stage.is_decided();
        let answer = change(&mut stage);
        if stage.is_decided() && !before {
            self.moved.notify_one();
        }
        answer
    }

    /// Whether it waits in the queue, as far as this client knows.
    pub fn is_waiting(&self) -> bool {
        self.look(|stage| matches!(stage, Stage::Waiting { .. }))
    }

    /// Whether it holds the lock, or lost it while holding.
    pub fn is_held(&self) -> bool {
        self.look(|stage| matches!(stage, Stage::Held { .. }))
    }

    /// Whether it has ended, before it held the lock or by a close.
    pub fn is_over(&self) -> bool {
        self.over().is_some()
    }

    /// How it has ended, if its stage says so.
    pub fn over(&self) -> Option<End> {
        self.look(|stage| match stage {
            Stage::Over(end) => Some(*end),
            _ => None,
        })
    }

    /// A request that was sent at `confirmed` has found it alive: see [`Stage::confirm`].
    pub fn renewed(&self, confirmed: Instant) {
        self.change(|stage| stage.confirm(confirmed, self.ttl));
    }

    /// The store does not have it any more, as the driver learns at `now`: see [`Stage::gone`].
    pub fn gone(&self, now: Instant) {
        self.change(|stage| stage.gone(LossReason::EntryGone, self.ttl, now));
    }

    /// The store says that it was revoked, as the driver learns at `now`: whatever its age, it has
    /// not expired.
    pub fn revoked(&self, now: Instant) {
        self.change(|stage| stage.gone(LossReason::EntryGone, Duration::MAX, now));
    }

    /// Ends the wait if the store has not answered for a TTL by `now`.
    pub fn expire_wait(&self, now: Instant) {
        self.change(|stage| {
            if matches!(stage, Stage::Waiting { sent, .. } if now.since(*sent) >= self.ttl) {
                *stage = Stage::Over(End::Unreachable);
            }
        });
    }

    /// The client is closed: every lock that it holds is free, and nothing waits any more.
    pub fn closed(&self) {
        self.change(|stage| {
            let before = std::mem::replace(stage, Stage::Over(End::Closed));
            if let Stage::Held { validity, .. } = before {
                validity.lose(LossReason::Closed);
            }
        });
    }

    /// Whether a renewal at `now` concerns it. A lock that was confirmed less than half a period
    /// before waits for the next renewal, so that short holds are never renewed.
    pub fn is_renewed(&self, now: Instant) -> bool {
        self.look(|stage| match stage {
            Stage::Waiting { .. } => true,
            Stage::Held { sent, validity, .. } => {
                self.term == Term::Renewed
                    && !validity.has_ended()
                    && now.since(*sent) >= self.period / 2
            }
            _ => false,
        })
    }

    /// Records a grant whose request was sent at `sent`: from now on it is held, and renewed. Fails
    /// with its end, if it has ended meanwhile.
    pub fn hold(&self, sent: Instant, note: H) -> Result<Validity, End> {
        self.change(|stage| {
            if let Stage::Over(end) = stage {
                return Err(*end);
            }
            let validity = Validity::new(&self.name, safe_until(sent, self.ttl));
            *stage = Stage::Held { sent, validity: validity.clone(), note };
            Ok(validity)
        })
    }

    /// How it has ended. If the stage does not say so yet, a request has just shown that the store
    /// does not have it any more: see [`End::gone`].
    pub fn ending(&self, reason: LossReason, sent: Instant, now: Instant) -> End {
        self.over().unwrap_or_else(|| End::gone(reason, sent, self.ttl, now))
    }

    /// Waits until it is granted, and returns when the grant was confirmed and its token. One
    /// caller at a time.
    pub async fn decided(&self) -> Result<(Instant, u64), End> {
        loop {
            let decision = self.look(|stage| match stage {
                Stage::Granted { sent, token } => Some(Ok((*sent, *token))),
                Stage::Over(end) => Some(Err(*end)),
                _ => None,
            });
            if let Some(decision) = decision {
                return decision;
            }
            // `Notify` keeps a permit for a notification that comes before this.
            self.moved.notified().await;
        }
    }
}

#[cfg(test)]
mod tests;
