//! Requests that are sent again until they are answered.

use std::{sync::Arc, time::Duration};

use lock_core::{
    Clock, Effect, Instant, Result,
    keep::{backoff::Backoff, cancel::unless_cancelled},
};
use redis::{Cmd, RedisError, Value};

use super::{Routes, Session, attempt::Attempt, node::Node, spare::Share};
use crate::{
    error,
    wire::{answer, failure::Failure, lua, script, turns::Lane},
};

/// Pauses before a request is sent again to a server that refuses for a while.
const PAUSES: Backoff = Backoff::new(Duration::from_millis(50), Duration::from_millis(500));
const CANCELLED: &str = "cancelled before it was sent";

/// The name of an operation in errors, and the lane of its requests.
pub(crate) type Op = (&'static str, Lane);

impl Session {
    /// Sends a command to its node, once: see [`Node::call`](super::node::Node::call).
    ///
    /// # Errors
    ///
    /// Also [`Failure::Short`] if it gains something that too few replicas have.
    pub(crate) async fn call(&self, command: &Cmd, limit: Duration) -> Result<Value, Failure> {
        let node = self.routes.of_command(command);
        match self.call_node(&node, command, false, (Share::Others, limit)).await? {
            (value, Some(had)) if script::gains(command, &value) => {
                // What it gained may be lost.
                Err(Failure::Short(had))
            }
            (value, _) => Ok(value),
        }
    }

    /// Same as [`call`](Self::call), for renewals. Returns also how many replicas have the change, if
    /// they are too few.
    pub(super) async fn call_and_count(
        &self,
        command: &Cmd,
        limit: Duration,
    ) -> Result<(Value, Option<u32>), Failure> {
        let node = self.routes.of_command(command);
        self.call_node(&node, command, false, (Share::Renewals, limit)).await
    }

    /// Same as [`call_and_count`](Self::call_and_count), to a given node. `asking`: a slot of a
    /// cluster is being moved there.
    pub(super) async fn call_node(
        &self,
        node: &Arc<Node>,
        command: &Cmd,
        asking: bool,
        (share, limit): (Share, Duration),
    ) -> Result<(Value, Option<u32>), Failure> {
        let limit = self.request_limit.map_or(limit, |most| limit.min(most));
        if self.wait_replicas > 0 && lua::takes(command) {
            let (value, had) =
                node.call_and_wait(command, self.wait_replicas, asking, (share, limit)).await?;
            return Ok((value, (had < self.wait_replicas).then_some(had)));
        }
        let answer = match asking {
            true => node.call_asking(command, limit).await,
            false => node.call(command, limit).await,
        };
        Ok((answer?, None))
    }

    /// Sends a command that may be executed twice, again and again until it is answered. Returns
    /// when the answered request was sent, and the answer as `read` reads it.
    ///
    /// # Errors
    ///
    /// [`Error::Unavailable`](lock_core::Error::Unavailable) if nothing was answered until the
    /// deadline, or if the caller was cancelled while there was no connection; its effect says
    /// whether the command may have been executed. The server's error if it refuses the command for
    /// good. [`Error::Rejected`](lock_core::Error::Rejected) if `read` does not know the answer.
    pub(crate) async fn insist<T>(
        &self,
        op: Op,
        command: &Cmd,
        limit: Duration,
        deadline: Instant,
        read: impl FnOnce(&Value) -> Option<T>,
    ) -> Result<(Instant, T)> {
        self.insist_and_tell(op, command, limit, deadline, None, read).await.1
    }

    /// Same as [`insist`](Self::insist), for a command without a key. A node that was given up is
    /// asked once.
    pub(crate) async fn insist_at<T>(
        &self,
        node: Option<&Node>,
        op: Op,
        command: &Cmd,
        limit: Duration,
        deadline: Instant,
        read: impl FnOnce(&Value) -> Option<T>,
    ) -> Result<(Instant, T)> {
        let Some(node) = node.filter(|_| matches!(self.routes, Routes::Slots(_))) else {
            return self.insist(op, command, limit, deadline, read).await;
        };
        let (op, lane) = op;
        loop {
            let turn = lane.turn(&self.turns, None).await;
            let sent = Clock::Boot.now();
            let answer = node.call(command, limit).await;
            drop(turn);
            let failure = match answer {
                Ok(value) => {
                    let answer = read(&value).ok_or_else(|| error::unexpected(op, &value));
                    return answer.map(|answer| (sent, answer));
                }
                Err(failure) => failure,
            };
            let left = deadline.since(Clock::Boot.now());
            let again = matches!(failure, Failure::Lost(_) | Failure::Down(_));
            if !again || node.is_retired() || !node.until_up(left, None).await {
                return Err(match failure {
                    Failure::Closed => error::closed(),
                    Failure::Down(e) => error::convert(op, RedisError::clone(&e)),
                    Failure::Lost(e) | Failure::Refused(e) => error::convert(op, e),
                    Failure::Short(had) => {
                        let short = error::Short { had, wanted: self.wait_replicas };
                        error::unavailable(op, Effect::Unknown, short)
                    }
                });
            }
        }
    }

    /// Sends a command that changes the lock of an attempt. Returns its answer.
    ///
    /// # Errors
    ///
    /// Same as [`insist`](Self::insist).
    pub(crate) async fn change(
        &self,
        attempt: &Attempt,
        op: &'static str,
        command: &Cmd,
    ) -> Result<i64> {
        let (op, deadline) = ((op, Lane::First), Clock::Boot.now() + attempt.ttl / 2);
        let answer = self.insist(op, command, attempt.patience(), deadline, answer::int).await;
        answer.map(|(_, answer)| answer)
    }

    /// Same as [`insist`](Self::insist), until the `caller` is cancelled, if one is given. Returns
    /// also whether a request before the last one may have been executed.
    pub(crate) async fn insist_and_tell<T>(
        &self,
        (op, lane): Op,
        command: &Cmd,
        limit: Duration,
        deadline: Instant,
        caller: Option<&lock_core::Attempt>,
        read: impl FnOnce(&Value) -> Option<T>,
    ) -> (Effect, Result<(Instant, T)>) {
        let (effect, answer) =
            self.insist_unread((op, lane), command, limit, deadline, caller).await;
        let answer = answer.and_then(|(sent, value)| {
            let answer = read(&value).ok_or_else(|| error::unexpected(op, &value));
            answer.map(|answer| (sent, answer))
        });
        (effect, answer)
    }

    /// [`insist_and_tell`](Self::insist_and_tell) up to the answer: one copy for all its readers.
    async fn insist_unread(
        &self,
        (op, lane): Op,
        command: &Cmd,
        limit: Duration,
        mut deadline: Instant,
        caller: Option<&lock_core::Attempt>,
    ) -> (Effect, Result<(Instant, Value)>) {
        let (mut effect, mut moved, mut pause) = (Effect::None, false, PAUSES);
        loop {
            let asked = Clock::Boot.now();
            let Some(turn) = lane.turn(&self.turns, caller).await else {
                return (effect, Err(error::unavailable(op, effect, CANCELLED)));
            };
            if lane == Lane::Turn && self.book().attempts.is_closed() {
                // A close has given back what was asked for before.
                return (effect, Err(error::closed()));
            }
            let sent = Clock::Boot.now();
            // Waiting for a turn does not count: a burst of this process is no outage.
            deadline = deadline + sent.since(asked);
            let answer = self.call(command, limit).await;
            drop(turn);
            let error = match answer {
                Ok(value) => return (effect, Ok((sent, value))),
                Err(Failure::Closed) => return (effect, Err(error::closed())),
                Err(Failure::Short(had)) => {
                    let short = error::Short { had, wanted: self.wait_replicas };
                    return (effect, Err(error::unavailable(op, Effect::Unknown, short)));
                }
                Err(Failure::Refused(e)) if self.is_redirected(None, &e) => {
                    // A second one in a row: the nodes do not agree yet.
                    if std::mem::replace(&mut moved, true) {
                        unless_cancelled(caller, pause.wait()).await;
                    }
                    e
                }
                Err(Failure::Refused(e)) if !error::is_passing(&e) => {
                    return (effect, Err(error::of_command(op, command, e)));
                }
                Err(Failure::Refused(e)) => {
                    if let Some(caller) = caller {
                        caller.put_off(&e);
                    }
                    // A connection is there all the time: only this ends the loop of a caller that
                    // left.
                    if unless_cancelled(caller, pause.wait()).await.is_none() {
                        return (effect, Err(error::unavailable(op, effect, e)));
                    }
                    e
                }
                Err(Failure::Lost(e)) => {
                    effect = Effect::Unknown;
                    e
                }
                Err(Failure::Down(e)) => RedisError::clone(&e),
            };
            let left = deadline.since(Clock::Boot.now());
            if left.is_zero() || !self.routes.until_up(command, left, caller).await {
                return (effect, Err(error::still_refused(op, effect, error)));
            }
        }
    }
}
