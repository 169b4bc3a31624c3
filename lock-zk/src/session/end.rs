//! The end of a session: who decides it, and what holders and waiters are told. The server does, by
//! refusing a request (`hear`) or in the client crate's view (`renewal::follow`); the client, after
//! a [`silence`](Deadline::silence) of one TTL, or at a raise of the token floor (`is_over`).

use std::sync::Weak;

use lock_core::{
    Clock, Effect, Error, Instant, LossReason, Result, Validity,
    duration::shown,
    keep::{errors::late, limits, poison::lock},
};
use zookeeper_client::{Error as ZkError, EventType};

use crate::{
    error::{self, Meaning, STORE, vanished},
    session::{Session, deadline::Deadline},
    wire::watches::Event,
};

/// How a session ended for us.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub(crate) enum End {
    /// By [`DistributedLock::close`](lock_core::DistributedLock::close).
    Closed,
    /// The server ended it (`renewal::follow`, or a request was refused).
    Ended,
    /// The token floor was raised.
    Raised,
    /// No answer came for one TTL (`Deadline::silence`): every holder has been told by its deadline, so
    /// nothing is left to save.
    Silent,
}

impl Deadline {
    /// Waits until the session is given up: for one TTL no write was answered, or no request at all
    /// while there were no attempts.
    ///
    /// Writes may be answered too slowly to prove anything. Then each holder is told by its own
    /// deadline, which stays once it has passed, and waiters can stay.
    pub(crate) async fn silence(&self) {
        while !self.is_past() {
            Clock::Boot.sleep_until(self.last_moment()).await;
        }
    }

    fn is_past(&self) -> bool {
        Clock::Boot.now() >= self.last_moment()
    }

    fn last_moment(&self) -> Instant {
        let state = self.state();
        let of_used = |used: Instant| used.max(state.proven).max(state.wrote);
        state.used.map_or(state.heard, of_used) + self.ttl
    }
}

impl Session {
    /// Ends the session for us; the first reason counts. Holders and waiters are told at once.
    pub(crate) fn finish(&self, end: End) {
        if self.end.set(end).is_err() {
            return;
        }
        let reason = match end {
            End::Closed => LossReason::Closed,
            End::Ended => LossReason::SessionEnded,
            End::Silent => LossReason::Expired,
            // As for the entries that the client that raises the floor deletes.
            End::Raised => LossReason::EntryGone,
        };
        let now = Clock::Boot.now();
        for attempt in lock(&self.attempts).drain().map(|(_, attempt)| attempt) {
            // After the process stood still, the server may be faster than the holder's own alarm,
            // which knows whether a term or a lease is over.
            let is_told = |validity: &&Validity| end != End::Ended || now < validity.until();
            if let Some(validity) = attempt.validity().filter(is_told) {
                validity.lose(reason);
            }
        }
        lock(&self.last).clear();
        lock(&self.client).take();
        self.over.cancel();
    }

    /// Learns from a request that failed. Ends the session for us if it was refused because the
    /// session is over.
    pub(crate) fn hear(&self, error: &ZkError) {
        match error::meaning(error) {
            Meaning::Over => self.finish(End::Ended),
            Meaning::Unanswered => self.broke(),
            _ => {}
        }
    }

    /// Whether it is over for us. The watch on the token floor's record ends it here, in whichever
    /// task asks first.
    pub(crate) fn is_over(&self) -> bool {
        let event = self.record.get().and_then(|(_, changed)| changed.clone().now());
        // The end of the session is an event of each watch, too.
        if event.is_some_and(|event| event != EventType::Session) {
            self.finish(End::Raised);
        }
        // Not `over`: another task may be about to tell the holders, and cancels only then.
        self.end.get().is_some()
    }

    /// Whether its end might not be told to a grant whose validity was set just now.
    pub(crate) fn may_not_tell(&self) -> bool {
        // `finish` sets the end first, and then looks for grants under this lock.
        let _order = lock(&self.attempts);
        self.end.get().is_some()
    }

    /// Waits until the token floor is raised, and ends the session.
    pub(crate) async fn end_when_raised(session: Weak<Self>, changed: Event) {
        changed.wait().await;
        let _ = session.upgrade().map(|session| session.is_over());
    }

    pub(crate) fn end(&self) -> Option<End> {
        self.end.get().copied()
    }

    /// The error of a call after the end.
    pub(crate) fn error(&self, op: &'static str) -> Error {
        match self.end() {
            Some(End::Closed) => Error::closed(STORE),
            Some(End::Raised) => vanished(),
            Some(End::Silent) => {
                let why = format!("no answer for {}; the session is given up", shown(self.ttl()));
                error::unavailable(op, Effect::None, self.route.with_failure(&why))
            }
            Some(End::Ended) | None => {
                error::unavailable(op, Effect::None, "the server ended the session")
            }
        }
    }

    /// What ends an attempt: the end of the session counts before what it does to the attempt's
    /// node, whichever the attempt sees first.
    pub(crate) fn ending(&self, error: Error) -> Error {
        match (&error, self.end()) {
            (Error::PlaceLost { .. }, Some(End::Closed | End::Ended | End::Silent)) => {
                self.error("acquire")
            }
            // After the process stood still, nothing has noticed yet.
            (Error::PlaceLost { .. }, None) if self.deadline.is_past() => late(STORE),
            _ => error,
        }
    }

    /// Ends the session and waits until the server has confirmed it.
    pub(crate) async fn close(&self) -> Result<()> {
        self.finish(End::Closed);
        let ended = Clock::Boot.timeout(limits::CLOSE, self.terminated.cancelled()).await;
        let why = "the server did not confirm the end of the session; it ends with its TTL";
        ended.ok_or_else(|| error::unavailable("close", Effect::Unknown, why))
    }
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use lock_core::validity::safe_until;

    use super::*;

    #[tokio::test]
    async fn a_session_whose_writes_are_answered_too_slowly_for_a_proof_is_not_given_up() {
        let (ttl, begun) = (Duration::from_millis(100), Clock::Boot.now());
        let deadline = Deadline::new(ttl, ttl * 10, begun);
        deadline.set_used(true);
        Clock::Boot.sleep_until(begun + ttl).await;
        let sent = Clock::Boot.now();
        deadline.count(sent, true);
        assert_eq!(deadline.last_moment(), sent + ttl);
        assert_eq!(deadline.safe_until(), safe_until(begun, ttl), "holders are told");
    }
}
