//! A connection for calls that count only when replicas have them, too.
//!
//! `WAIT` counts the writes of its own connection, and blocks it. Calls that come meanwhile wait in
//! this process. Then they travel together, with one `WAIT` behind them.

use std::{io, pin::pin, time::Duration};

use redis::{Cmd, RedisError, RedisResult, Value, cmd, from_redis_value};
use tokio::sync::{mpsc, oneshot};

use super::{call::Call, pipe::Pipe};

/// The most calls that travel together.
const TOGETHER: usize = 256;

/// The connection. It is closed when this is dropped.
#[derive(Debug)]
pub(super) struct Waited(mpsc::UnboundedSender<Waiting>);

/// A call, and who waits for its answer.
struct Waiting {
    call: Call,
    limit: Duration,
    caller: oneshot::Sender<RedisResult<(Value, u32)>>,
}

impl Waited {
    /// Uses a connection from now on.
    pub(super) fn start(pipe: Pipe, replicas: u32) -> Self {
        let (calls, waiting) = mpsc::unbounded_channel();
        tokio::spawn(serve(pipe, replicas, waiting));
        Self(calls)
    }

    /// Sends a call. Returns its answer, and how many replicas have what it has changed. Fails as
    /// [`Pipe::call`]. A call that is dropped may still be sent.
    pub(super) async fn call(&self, call: &Call, limit: Duration) -> RedisResult<(Value, u32)> {
        let (caller, answer) = oneshot::channel();
        let waiting = Waiting { call: call.clone(), limit, caller };
        self.0.send(waiting).map_err(|_| ended())?;
        answer.await.unwrap_or_else(|_| Err(ended()))
    }
}

/// The task has ended, with its connection or its runtime.
fn ended() -> RedisError {
    io::Error::from(io::ErrorKind::ConnectionAborted).into()
}

async fn serve(pipe: Pipe, replicas: u32, mut calls: mpsc::UnboundedReceiver<Waiting>) {
    let mut together = Vec::new();
    while calls.recv_many(&mut together, TOGETHER).await > 0 {
        let limit = together.iter().map(|one| one.limit).min().unwrap_or_default();
        let mut wait = cmd("WAIT");
        wait.arg(replicas).arg(u64::try_from((limit / 2).as_millis()).unwrap_or(u64::MAX));
        let answered = pipe.patiently(limit, pin!(call_all(&pipe, &together, &wait))).await;
        let callers = together.drain(..).map(|one| one.caller);
        match answered {
            Ok((answers, had)) => {
                for (caller, answer) in callers.zip(answers) {
                    let _ = caller.send(answer.map(|value| (value, had)));
                }
            }
            // The connection is given up: what waits is not sent on it.
            Err(error) => return callers.for_each(|one| drop(one.send(Err(error.clone())))),
        }
    }
}

/// Returns the answer of each call, and how many replicas have the changes of all.
async fn call_all(
    pipe: &Pipe,
    calls: &[Waiting],
    wait: &Cmd,
) -> RedisResult<(Vec<RedisResult<Value>>, u32)> {
    let mut flight = redis::pipe();
    for one in calls {
        if one.call.asking {
            flight.cmd("ASKING");
        }
        flight.add_command(one.call.command.clone());
    }
    flight.add_command(wait.clone());
    let mut values = pipe.send_all(&flight).await?.into_iter();
    let mut next = || values.next().unwrap_or(Value::Nil).extract_error();
    let mut answers = Vec::with_capacity(calls.len());
    for one in calls {
        if one.call.asking {
            drop(next());
        }
        answers.push(next());
    }
    let (mut had, mut repeats) = (next(), false);
    for (one, answer) in calls.iter().zip(&mut answers) {
        if one.call.lacked(answer).is_some() {
            *answer = pipe.ask(&one.call).await;
            repeats = true;
        }
    }
    if repeats {
        had = pipe.send(wait).await;
    }
    match had.and_then(|had| Ok(from_redis_value(had)?)) {
        Ok(had) => Ok((answers, had)),
        // A server that became a replica refuses `WAIT` as well. What it says of a call leads to the
        // primary (`MOVED`, `READONLY`), so that counts first.
        Err(error) => {
            let uncounted = |answer: RedisResult<Value>| answer.and(Err(error.clone()));
            Ok((answers.into_iter().map(uncounted).collect(), 0))
        }
    }
}
