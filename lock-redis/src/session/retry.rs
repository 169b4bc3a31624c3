//! Requests, sent once, or again and again until they are answered.

use std::{sync::Arc, time::Duration};

use lock_core::{
    Clock, Effect, Instant, Result,
    keep::{backoff::Backoff, cancel::unless_cancelled},
};
use redis::Value;

use super::{Session, attempt::Attempt, node::Node};
use crate::{
    error,
    wire::{answer, call::Request, failure::Failure},
};

/// The most acquires and looks in flight. More wait in this process, in order. Urgent requests wait
/// behind those in flight, here and at the server, and on a busy machine mostly here. Enough for
/// 25,000 per second at 2.5 ms.
pub(super) const TURNS: usize = 64;
/// Pauses before a request is sent again to a server that refuses for a while.
const PAUSES: Backoff = Backoff::new(Duration::from_millis(50), Duration::from_millis(500));
const CANCELLED: &str = "cancelled before it was sent";

/// An answer. `short`: how many replicas have what it has changed, if they are too few.
#[derive(Debug)]
pub(super) struct Answer {
    pub(super) value: Value,
    pub(super) short: Option<u32>,
}

impl Answer {
    /// Returns the answer.
    ///
    /// # Errors
    ///
    /// [`Failure::Short`] if it says that something was gained that too few replicas have.
    pub(super) fn counted(self, request: &Request<'_>) -> Result<Value, Failure> {
        match self.short {
            Some(had) if request.call.has_gained(&self.value) => Err(Failure::Short(had)),
            _ => Ok(self.value),
        }
    }
}

/// For how long a request is tried, and for whom.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Effort<'a> {
    /// The operation's name in errors.
    pub(crate) op: &'static str,
    /// Whether it waits for no turn: renewals, conversions, releases, revokes.
    pub(crate) is_urgent: bool,
    /// Time limit of one answer.
    pub(crate) limit: Duration,
    /// Until when it is sent again.
    pub(crate) deadline: Instant,
    /// Who may give up.
    pub(crate) caller: Option<&'a lock_core::Attempt>,
    /// `None`: the node of its key. A node that was given up is asked once.
    pub(crate) node: Option<&'a Arc<Node>>,
}

impl Effort<'_> {
    /// An effort that waits for its turn: acquires and looks.
    pub(crate) fn in_turn(op: &'static str, limit: Duration, deadline: Instant) -> Self {
        Self { op, is_urgent: false, limit, deadline, caller: None, node: None }
    }

    pub(crate) fn urgent(op: &'static str, limit: Duration, deadline: Instant) -> Self {
        Self { is_urgent: true, ..Self::in_turn(op, limit, deadline) }
    }
}

/// What became of a request.
pub(crate) struct Outcome<T> {
    /// Whether a request before the last one may have been executed.
    pub(crate) before: Effect,
    /// When the answered request was sent, and its answer.
    pub(crate) answer: Result<(Instant, T)>,
}

impl<T> Outcome<T> {
    /// Whether it failed, and the request may have been executed.
    pub(crate) fn is_unknown(&self) -> bool {
        let unknown = |effect| effect == Effect::Unknown;
        self.answer.as_ref().is_err_and(|error| unknown(self.before) || unknown(error.effect()))
    }
}

impl Session {
    /// Sends a request once, to this node or else to the one of its key, as [`Node::call`] does.
    pub(super) async fn call(
        &self,
        request: &Request<'_>,
        node: Option<&Arc<Node>>,
        limit: Duration,
    ) -> Result<Answer, Failure> {
        let limit = self.config.timeouts.request.map_or(limit, |most| limit.min(most));
        let node = node.cloned().unwrap_or_else(|| self.routes.of(request.key));
        let (value, had) = node.call(&request.call, limit).await?;
        Ok(Answer { value, short: had.filter(|had| *had < self.config.wait_replicas) })
    }

    /// Sends a request that may be executed twice, again and again until it is answered. Reads the
    /// answer by `read`.
    ///
    /// # Errors
    ///
    /// [`Error::Unavailable`](lock_core::Error::Unavailable) if nothing was answered until the
    /// deadline, or if the caller was cancelled while there was no connection; its effect says
    /// whether the request may have been executed. The server's error if it refuses the request for
    /// good. [`Error::Rejected`](lock_core::Error::Rejected) if `read` does not know the answer.
    pub(crate) async fn insist<T>(
        &self,
        request: &Request<'_>,
        effort: Effort<'_>,
        read: impl FnOnce(&Value) -> Option<T>,
    ) -> Outcome<T> {
        let Outcome { before, answer } = self.insist_unread(request, effort).await;
        let answer = answer.and_then(|(sent, value)| {
            let answer = read(&value).ok_or_else(|| error::unexpected(effort.op, &value));
            answer.map(|answer| (sent, answer))
        });
        Outcome { before, answer }
    }

    /// Sends a request that changes the lock of an attempt. Returns its answer.
    ///
    /// # Errors
    ///
    /// Same as [`insist`](Self::insist).
    pub(crate) async fn change(
        &self,
        attempt: &Attempt,
        op: &'static str,
        request: &Request<'_>,
    ) -> Result<i64> {
        let deadline = Clock::Boot.now() + attempt.ttl / 2;
        let effort = Effort::urgent(op, attempt.patience(), deadline);
        let outcome = self.insist(request, effort, answer::int).await;
        outcome.answer.map(|(_, answer)| answer)
    }

    /// [`insist`](Self::insist) up to the answer: one copy for all its readers.
    async fn insist_unread(&self, request: &Request<'_>, effort: Effort<'_>) -> Outcome<Value> {
        let Effort { op, is_urgent, limit, mut deadline, caller, node } = effort;
        let (mut before, mut moved, mut pause) = (Effect::None, false, PAUSES);
        let answer = loop {
            let asked = Clock::Boot.now();
            // It is never closed.
            let turn = async { if is_urgent { None } else { self.turns.acquire().await.ok() } };
            let Some(turn) = unless_cancelled(caller, turn).await else {
                break Err(error::unavailable(op, before, CANCELLED));
            };
            if !is_urgent && self.book().attempts.is_closed() {
                // A close has given back what was asked for before.
                break Err(error::closed());
            }
            let sent = Clock::Boot.now();
            // Waiting for a turn does not count: a burst of this process is no outage.
            deadline = deadline + sent.since(asked);
            let answer = self.call(request, node, limit).await;
            let answer = answer.and_then(|answer| answer.counted(request));
            drop(turn);
            let error = match answer {
                Ok(value) => break Ok((sent, value)),
                Err(Failure::Closed) => break Err(error::closed()),
                Err(Failure::Short(had)) => {
                    let short = error::Short { had, wanted: self.config.wait_replicas };
                    break Err(error::unavailable(op, Effect::Unknown, short));
                }
                Err(Failure::Refused(e)) if self.is_redirected(&e) => {
                    // A second one in a row: the nodes do not agree yet.
                    if std::mem::replace(&mut moved, true) {
                        Box::pin(unless_cancelled(caller, pause.wait())).await;
                    }
                    e
                }
                Err(Failure::Refused(e)) if !error::is_passing(&e) => {
                    break Err(error::of_request(op, request, e));
                }
                Err(Failure::Refused(e)) => {
                    if let Some(caller) = caller {
                        caller.put_off(&e);
                    }
                    // A connection is there all the time: only this ends the loop of a caller that
                    // left.
                    if Box::pin(unless_cancelled(caller, pause.wait())).await.is_none() {
                        break Err(error::unavailable(op, before, e));
                    }
                    e
                }
                Err(Failure::Lost(e)) => {
                    before = Effect::Unknown;
                    e
                }
                Err(Failure::Down(e)) => e,
            };
            let left = deadline.since(Clock::Boot.now());
            let again = !left.is_zero()
                && match node {
                    Some(node) => !node.is_retired() && Box::pin(node.until_up(left, caller)).await,
                    None => Box::pin(self.routes.until_up(request.key, left, caller)).await,
                };
            if !again {
                break Err(error::still_refused(op, before, error));
            }
        };
        Outcome { before, answer }
    }
}
