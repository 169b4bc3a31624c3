//! Runs scripts: each in its turn, on a connection that it has for itself.

use std::{
    sync::{Arc, Weak},
    time::Duration,
};

use lock_core::{Attempt, Clock, Instant, keep::cancel::unless_cancelled};
use tokio::{runtime::Handle, time::timeout};

use crate::{
    error::Refusal,
    layout::{
        dialect::{Dialect, stamp},
        row::Rows,
    },
    wire::{
        connections::{Connections, Made},
        database::{Answer, Database},
        failure::Failure,
        hosts::Link,
        turns::{GOODBYE, Limit, Rank, Turn, over},
        verdict::Origin,
    },
};

/// Longest time that a server executes a script after its caller has given up: longer than the
/// server's own limits, which the settings of a connection say.
const STALL: Duration = Duration::from_secs(4);

impl dyn Database + '_ {
    /// Waits for a turn to run a script, unless the attempt is cancelled. Only a silence of the
    /// database of `patience` ends the wait: a turn in this process is no outage.
    pub(crate) async fn turn(
        &self,
        rank: Rank,
        patience: Duration,
        caller: Option<&Attempt>,
    ) -> Result<Turn, Failure> {
        let turn = unless_cancelled(caller, self.turns().take(rank, patience)).await;
        turn.unwrap_or_else(|| Err(Failure::down("nobody waits for the answer any more")))
    }

    /// Runs a script when it is its turn. Returns when it was sent, and all entries in its answer.
    pub(crate) async fn run(&self, rank: Rank, script: &str, limit: Duration) -> Answer {
        let turn = self.turn(rank, limit, None).await?;
        self.run_in(turn, script, limit).await
    }

    /// Same as [`run`](Self::run) in a turn.
    pub(crate) async fn run_in(&self, turn: Turn, script: &str, limit: Duration) -> Answer {
        let answer = self.execute(script, &Limit::new(limit), turn).await;
        match &answer {
            Ok(_) | Err(Failure::Refused(_)) => self.turns().note_answer(),
            // This client is closed.
            Err(Failure::Closed) => {}
            Err(failure) => self.turns().reach.broke(failure.why()),
        }
        answer
    }
}

/// A connection that executes a script, in its turn. If the caller gives up before the answer, it
/// keeps its seat, or one of the stragglers', until the server has ended the script. So a stall
/// cannot use up the server's connections.
struct Busy<C: Link> {
    /// `None` once the connection is put back or discarded.
    made: Option<(Made<C>, Turn)>,
    connections: Arc<Connections<C>>,
}

impl<C: Link> Connections<C> {
    /// Runs a script in its turn. If its login lacks a right by now, runs it once more with another
    /// login if there is one.
    pub(crate) async fn run(
        self: &Arc<Self>,
        script: &str,
        limit: &Limit,
        mut turn: Turn,
    ) -> Answer {
        let mut is_again = false;
        let message = self.hosts.message(script);
        loop {
            let mut busy = self.busy(limit, turn).await?;
            let limit = limit.at_most(self.hosts.timeouts.request);
            let sent = Clock::Boot.now();
            let Made { connection, plans, .. } = busy.made()?;
            let rows = connection.fetch(stamp(&message, sent), plans.as_mut());
            let error = match limit.within(rows).await {
                Ok(Ok(rows)) => {
                    // The database behind a pooler may be another one for each message.
                    if let Ok(Rows { origin: Some(origin), .. }) = &rows {
                        self.hosts.found(0, Some(Origin::of(*origin)));
                    }
                    busy.put_back();
                    return rows.map(|rows| (sent, rows)).map_err(Failure::Refused);
                }
                Ok(Err(error)) => error,
                Err(over) => {
                    self.broke(sent);
                    return Err(Failure::Lost(over));
                }
            };
            let refusal = Refusal::of(C::DIALECT, &error);
            // No answer came, or the database has ended the script in the middle.
            if error.as_database_error().is_none() || refusal == Refusal::Ended {
                busy.discard();
                return Err(Failure::Lost(error));
            }
            if refusal == Refusal::ReadOnly {
                busy.discard();
                return Err(Failure::Refused(error));
            }
            let connection = &mut busy.made()?.connection;
            let left = async {
                match C::DIALECT {
                    // A message is one transaction, which the refusal has ended.
                    Dialect::Postgres => connection.ping().await,
                    // A script that ended half-way has left its transaction open, if it had one.
                    _ => connection.fetch("ROLLBACK".to_owned(), None).await.map(drop),
                }
            };
            match limit.within(left).await {
                Ok(Ok(()) | Err(sqlx::Error::Database(_))) => {
                    // Of a schema that it may not use, PostgreSQL does not even find the tables.
                    let lacks_right = matches!(refusal, Refusal::Denied | Refusal::NoTable);
                    let leaves = !is_again && lacks_right && busy.leaves_login();
                    if let Some(free) = busy.put_back().filter(|_| leaves) {
                        (turn, is_again) = (free, true);
                        continue;
                    }
                }
                Ok(Err(_)) => busy.discard(),
                Err(_) => self.broke(sent),
            }
            return Err(Failure::Refused(error));
        }
    }

    /// Takes a connection, if there is time enough to use it.
    async fn busy(self: &Arc<Self>, limit: &Limit, turn: Turn) -> Result<Busy<C>, Failure> {
        if self.is_refusing() {
            return Err(Failure::Closed);
        }
        let made = limit.within(self.take(turn.rank, limit)).await.map_err(Failure::Down)??;
        if limit.is_short() {
            // The caller would give up before the answer, and lose the connection.
            self.put_back(made);
            return Err(Failure::Down(over(limit.whole)));
        }
        Ok(Busy { made: Some((made, turn)), connections: self.clone() })
    }
}

impl<C: Link> Busy<C> {
    /// The connection is there until it is put back or discarded.
    fn made(&mut self) -> Result<&mut Made<C>, Failure> {
        self.made.as_mut().map(|(made, _)| made).ok_or(Failure::Closed)
    }

    /// Gives the connection back, which has answered. Returns the turn.
    fn put_back(&mut self) -> Option<Turn> {
        let (mut made, turn) = self.made.take()?;
        made.answered = Clock::Boot.now();
        made.renewed = turn.rank == Rank::Renew;
        self.connections.put_back(made);
        Some(turn)
    }

    /// See [`Connections::leaves_login`].
    fn leaves_login(&self) -> bool {
        self.made.as_ref().is_some_and(|(made, _)| self.connections.leaves_login(made))
    }

    /// Drops the connection, which is broken, and all unused ones.
    fn discard(&mut self) {
        self.connections.broke(Instant::NEVER);
        self.made = None;
    }
}

impl<C: Link> Drop for Busy<C> {
    fn drop(&mut self) {
        let (Some((made, turn)), Ok(runtime)) = (self.made.take(), Handle::try_current()) else {
            return;
        };
        let Made { connection, seat, moved, .. } = made;
        let connections = Arc::downgrade(&self.connections);
        match self.connections.stragglers.clone().try_acquire_owned() {
            Ok(held) => drop(runtime.spawn(end(connection, moved, connections, held))),
            Err(_) => drop(runtime.spawn(end(connection, moved, connections, (turn, seat)))),
        }
    }
}

/// Waits until the server has ended the script, which it does by itself after a while, and ends the
/// connection. A commit that hangs keeps its place for as long as the server says that some do: its
/// connection would stay there all the same.
async fn end<C: Link>(
    mut connection: C,
    moved: Option<Instant>,
    connections: Weak<Connections<C>>,
    held: impl Send,
) {
    let ended = async move {
        if connection.ping().await.is_ok() {
            let _ = timeout(GOODBYE, connection.close()).await;
        }
    };
    tokio::pin!(ended);
    while timeout(STALL, &mut ended).await.is_err() {
        let Some(connections) = connections.upgrade() else { break };
        let is_left = connections.is_refusing() || connections.hosts.moved_at() != moved;
        if is_left || !connections.commits_hang(STALL / 2).await {
            break;
        }
    }
    drop(held);
}
