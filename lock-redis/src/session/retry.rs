//! Requests that are sent again until they are answered.

use std::{sync::Arc, time::Duration};

use lock_core::{Attempt, Effect, Instant, Result};
use redis::{Cmd, RedisError, Value};
use tokio::{
    sync::SemaphorePermit,
    time::{sleep, timeout},
};

use super::{CLOCK, Link, Session};
use crate::{error, wire::connection::Connection};

/// Before a request is sent again to a server that refuses for a while.
const PAUSE: Duration = Duration::from_millis(50);
/// How many acquires and looks are in flight. More wait in this process, in order: what is urgent
/// waits for those, here and at the server, and on a busy machine mostly here. Enough for 25,000
/// per second at 2.5 ms.
pub(super) const TURNS: usize = 64;
const CANCELLED: &str = "cancelled before it was sent";

/// The permission to send; `None` if none is needed.
type Turn<'a> = Option<SemaphorePermit<'a>>;

/// What a request waits for before it is sent.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub(crate) enum Lane {
    /// Nothing: renewals, conversions, releases, revokes.
    First,
    /// A turn: acquires and looks.
    Turn,
}

/// Why a request has no answer, for the caller to try again or not.
#[derive(Debug)]
pub(crate) enum Failure {
    Closed,
    /// Not sent: there is no connection now.
    Down(Arc<RedisError>),
    /// Sent perhaps, and perhaps executed.
    Lost(RedisError),
    /// The server refused it.
    Refused(RedisError),
}

impl Session {
    /// Sends a command on the present connection.
    ///
    /// # Errors
    ///
    /// See [`Failure`].
    ///
    /// # Cancel safety
    ///
    /// As [`Connection::call`].
    pub(crate) async fn call(&self, command: &Cmd, limit: Duration) -> Result<Value, Failure> {
        let connection = self.connection()?;
        let answer = connection.call(command, limit).await;
        self.judge(&connection, answer)
    }

    /// The present connection.
    ///
    /// # Errors
    ///
    /// [`Failure::Down`] or [`Failure::Closed`].
    pub(crate) fn connection(&self) -> Result<Connection, Failure> {
        match &*self.link.borrow() {
            Link::Up(connection) => Ok(connection.clone()),
            Link::Down(error, _) => Err(Failure::Down(error.clone())),
            Link::Closed => Err(Failure::Closed),
        }
    }

    /// What an answer means for its caller, and for the connection.
    ///
    /// # Errors
    ///
    /// See [`Failure`].
    pub(crate) fn judge(
        &self,
        connection: &Connection,
        answer: Result<Value, RedisError>,
    ) -> Result<Value, Failure> {
        match answer {
            Ok(value) => Ok(value),
            Err(error) if error::is_broken(&error) => {
                self.lose(connection.number, error.clone());
                Err(Failure::Lost(error))
            }
            Err(error) => {
                if error::is_replica(&error) {
                    // It is a replica now. The address may lead to the new primary.
                    self.lose(connection.number, error.clone());
                }
                Err(Failure::Refused(error))
            }
        }
    }

    /// Sends a command that may be executed twice, again and again until it is answered. Answers
    /// also when the answered request was sent.
    ///
    /// # Errors
    ///
    /// [`Error::Unavailable`](lock_core::Error::Unavailable) if nothing was answered until the
    /// deadline, or if the attempt was cancelled while there was no connection; its effect says
    /// whether the command may have been executed. What the server says to a command that it
    /// refuses for good.
    pub(crate) async fn insist(
        &self,
        lane: Lane,
        op: &'static str,
        command: &Cmd,
        limit: Duration,
        deadline: Instant,
        attempt: Option<&Attempt>,
    ) -> Result<(Instant, Value)> {
        self.insist_and_tell(lane, op, command, limit, deadline, attempt).await.1
    }

    /// As [`insist`](Self::insist). Tells also whether a request before the last one may have been
    /// executed, whatever became of that one.
    pub(crate) async fn insist_and_tell(
        &self,
        lane: Lane,
        op: &'static str,
        command: &Cmd,
        limit: Duration,
        mut deadline: Instant,
        attempt: Option<&Attempt>,
    ) -> (Effect, Result<(Instant, Value)>) {
        let mut effect = Effect::None;
        loop {
            let asked = CLOCK.now();
            let Some(turn) = self.turn(lane, attempt).await else {
                return (effect, Err(error::unavailable(op, effect, CANCELLED)));
            };
            let sent = CLOCK.now();
            // A burst of this process is no outage.
            deadline = deadline + sent.since(asked);
            let answer = self.call(command, limit).await;
            drop(turn);
            let error = match answer {
                Ok(value) => return (effect, Ok((sent, value))),
                Err(Failure::Closed) => return (effect, Err(error::closed())),
                Err(Failure::Refused(e)) if !error::is_passing(&e) => {
                    return (effect, Err(error::of_command(op, command, e)));
                }
                Err(Failure::Refused(e)) => {
                    sleep(PAUSE).await;
                    e
                }
                Err(Failure::Lost(e)) => {
                    effect = Effect::Unknown;
                    e
                }
                Err(Failure::Down(e)) => RedisError::clone(&e),
            };
            let left = deadline.since(CLOCK.now());
            if left.is_zero() || !self.until_up(left, attempt).await {
                return (effect, Err(error::unavailable(op, effect, error)));
            }
        }
    }

    /// Waits for a turn; `None` if the attempt is cancelled.
    pub(crate) async fn turn(&self, lane: Lane, attempt: Option<&Attempt>) -> Option<Turn<'_>> {
        let turn = async {
            match lane {
                Lane::First => None,
                // It is never closed.
                Lane::Turn => self.turns.acquire().await.ok(),
            }
        };
        match attempt {
            None => Some(turn.await),
            Some(attempt) => tokio::select! {
                biased;
                turn = turn => Some(turn),
                () = attempt.cancelled() => None,
            },
        }
    }

    /// Waits for a connection; false if there is none in time, or the attempt is cancelled.
    async fn until_up(&self, limit: Duration, attempt: Option<&Attempt>) -> bool {
        let mut link = self.link.subscribe();
        let up = timeout(limit, link.wait_for(|link| !matches!(link, Link::Down(..))));
        match attempt {
            None => up.await.is_ok(),
            Some(attempt) => tokio::select! {
                up = up => up.is_ok(),
                () = attempt.cancelled() => false,
            },
        }
    }
}
