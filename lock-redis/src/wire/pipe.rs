//! One connection as a pipe: commands go in, answers come out in the same order.

use std::{
    future::Future,
    pin::{Pin, pin},
    sync::atomic::{AtomicU64, Ordering},
    time::Duration,
};

use futures_util::future::join;
use redis::{Cmd, Pipeline, RedisResult, Value, cmd};
use tokio::time::timeout;

use super::{call::Call, client_id::ClientId, dial::Opened, info::Info};
use crate::error;

/// Number of steps in which a caller's time limit is counted.
const STEPS: u32 = 4;
/// Number of steps after which a request fails, even if others are answered.
const MOST_STEPS: u32 = 3 * STEPS;

#[derive(Debug)]
pub(super) struct Pipe {
    opened: Opened,
    /// Number of answered requests.
    answers: AtomicU64,
}

impl Pipe {
    pub(super) fn new(opened: Opened) -> Self {
        Self { opened, answers: AtomicU64::default() }
    }

    /// Sends a call and waits for its answer. If the server lacks the call's script, sends the
    /// script and the call again.
    ///
    /// # Errors
    ///
    /// The client library's error; a timeout if the server was silent for `limit`, or answered only
    /// others for three times as long.
    ///
    /// # Cancel safety
    ///
    /// When the future is dropped, the call may or may not be sent. If it is, then before every
    /// later one.
    pub(super) async fn call(&self, call: &Call, limit: Duration) -> RedisResult<Value> {
        self.patiently(limit, pin!(self.ask(call))).await
    }

    /// Same as [`call`](Self::call), without a time limit.
    pub(super) async fn ask(&self, call: &Call) -> RedisResult<Value> {
        let answer = self.ask_once(call).await;
        let Some(script) = call.lacked(&answer) else { return answer };
        let load = script.load();
        // In one flight. In a box, as all that is rare: each call's future would have room for it.
        let flight = join(self.send(&load), self.ask_once(call));
        let (loaded, answer) = Box::pin(flight).await;
        loaded.and(answer)
    }

    async fn ask_once(&self, call: &Call) -> RedisResult<Value> {
        if !call.asking {
            return self.send(&call.command).await;
        }
        // Nothing may come between the two.
        let mut both = redis::pipe();
        both.cmd("ASKING").add_command(call.command.clone());
        let answers = Box::pin(self.send_all(&both)).await?;
        answers.into_iter().next_back().unwrap_or(Value::Nil).extract_error()
    }

    /// Sends one command.
    pub(super) async fn send(&self, command: &Cmd) -> RedisResult<Value> {
        // A clone is cheap (two counters), and the library needs one per call.
        let answer = self.opened.redis.clone().send_packed_command(command).await?;
        self.answers.fetch_add(1, Ordering::Relaxed);
        answer.extract_error()
    }

    /// Sends several commands with nothing between them. Answers may be errors of the server.
    pub(super) async fn send_all(&self, commands: &Pipeline) -> RedisResult<Vec<Value>> {
        let mut redis = self.opened.redis.clone();
        let answers = redis.send_packed_commands(commands, 0, commands.len()).await?;
        self.answers.fetch_add(1, Ordering::Relaxed);
        Ok(answers)
    }

    /// Waits in steps. Gives up after [`STEPS`] steps in a row without any answer, or
    /// [`MOST_STEPS`] in all. Answers come in the order of the requests, so one behind many others
    /// is late, not lost. The same is true after this process stood still: a step that took too
    /// long counts as one.
    pub(super) async fn patiently<T>(
        &self,
        limit: Duration,
        mut call: Pin<&mut impl Future<Output = RedisResult<T>>>,
    ) -> RedisResult<T> {
        let (mut heard, mut silent) = (self.answers(), 0);
        for _ in 0..MOST_STEPS {
            if let Ok(answer) = timeout(limit / STEPS, &mut call).await {
                return answer;
            }
            let before = std::mem::replace(&mut heard, self.answers());
            silent = if heard == before { silent + 1 } else { 0 };
            if silent == STEPS {
                break;
            }
        }
        Err(error::silent(limit))
    }

    pub(super) fn answers(&self) -> u64 {
        self.answers.load(Ordering::Relaxed)
    }

    /// Subscribes to a channel, or unsubscribes. Doing it twice changes nothing.
    pub(super) async fn listen(&self, channel: &[u8], listen: bool) -> RedisResult<()> {
        let mut redis = self.opened.redis.clone();
        match listen {
            true => redis.subscribe(channel).await,
            false => redis.unsubscribe(channel).await,
        }
    }

    /// Asks what the server says about itself. It may be forbidden: then nothing is known.
    ///
    /// # Errors
    ///
    /// The client library's error if this connection is broken, or the server may answer soon.
    pub(super) async fn info(&self) -> RedisResult<Info> {
        match self.send(&cmd("INFO")).await {
            Err(error) if error::is_broken(&error) || error::is_passing(&error) => Err(error),
            answer => Ok(answer.map(|info| Info::read(&info)).unwrap_or_default()),
        }
    }

    /// Asks how the server calls this connection. It may be forbidden; then a late request ends
    /// with its TTL.
    pub(super) async fn peer(&self) -> Option<ClientId> {
        self.send(cmd("CLIENT").arg("INFO")).await.ok().as_ref().and_then(ClientId::read)
    }

    /// Lets the server end other connections, if it may be asked to: so no request that is still on
    /// its way there takes effect after a request on this one.
    ///
    /// # Errors
    ///
    /// The client library's error if this connection is broken.
    pub(super) async fn kill(&self, peers: &[ClientId]) -> RedisResult<()> {
        for peer in peers {
            match self.send(&peer.kill()).await {
                Err(error) if error::is_broken(&error) => return Err(error),
                _ => {}
            }
        }
        Ok(())
    }
}
