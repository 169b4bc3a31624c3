//! One connection to one node.

use std::{
    fmt,
    sync::{
        Arc, Mutex,
        atomic::{AtomicU64, Ordering},
    },
    time::Duration,
};

use futures_util::future::{join, join_all};
use lock_core::{Clock, Instant, keep::poison::lock};
use redis::{Cmd, ErrorKind, RedisResult, ServerErrorKind, Value, cmd};
use tokio::time::timeout;

use super::{
    super::{fault::Fault, script},
    flight::Flight,
    identity::{Identity, SECTIONS},
};
use crate::wire::{answer::text, dial::Opened, peer::Peer};

/// After this time without any answer a connection is given up.
const SILENCE: Duration = Duration::from_secs(1);

/// A connection to a node that is ready: the node is known, and has the scripts.
pub(in super::super) struct Line {
    opened: Opened,
    /// The node's name for this connection, if known.
    pub(super) peer: Option<Peer>,
    /// From when on the node's votes count.
    pub(super) counts_from: Instant,
    /// Since when a request waits while no request has been answered.
    unanswered: Arc<Mutex<Option<Instant>>>,
    /// How many requests were sent again because the node had lost their scripts.
    repeats: AtomicU64,
}

impl fmt::Debug for Line {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Line").field("peer", &self.peer).finish_non_exhaustive()
    }
}

impl Line {
    pub(super) fn new(opened: Opened) -> Self {
        let (peer, unanswered, repeats) = Default::default();
        Self { opened, peer, counts_from: Instant::NEVER, unanswered, repeats }
    }

    /// Loads the scripts, asks who the node is, and lets it end the `previous` connection: so no
    /// request that is still on its way there takes effect after a request on this one.
    ///
    /// # Errors
    ///
    /// The reason why the node cannot be used.
    pub(super) async fn prepare(&mut self, previous: Option<&Peer>) -> Result<Identity, Fault> {
        let fault = |error| Fault::of(&error);
        for script in script::SCRIPTS.iter() {
            self.send(&script.load()).await.map_err(fault)?;
        }
        let info = self.info().await.map_err(fault)?;
        let identity = Identity::read(&info)
            .ok_or_else(|| Fault::unfit("INFO does not show run_id and uptime_in_seconds"))?;
        identity.check()?;
        // Both may be forbidden, and then a late request ends with its TTL.
        self.peer = self.send(&Peer::question()).await.ok().as_ref().and_then(Peer::read);
        if let Some(previous) = previous {
            let _ = self.send(&previous.kill()).await;
        }
        Ok(identity)
    }

    async fn info(&self) -> RedisResult<String> {
        let sections = SECTIONS.map(|section| cmd("INFO").arg(section).to_owned());
        let answers = join_all(sections.iter().map(|section| self.send(section))).await;
        answers.into_iter().map(|answer| Ok(text(&answer?) + "\n")).collect()
    }

    /// Sends one command and waits for its answer. If the node lacks the command's script, sends
    /// the script and the command again.
    ///
    /// # Errors
    ///
    /// The reason why there is no answer.
    ///
    /// # Cancel safety
    ///
    /// When the future is dropped, the command may or may not be sent. If it is, then before every
    /// later one.
    pub(super) async fn call(&self, command: &Cmd, limit: Duration) -> Result<Value, Fault> {
        lock(&self.unanswered).get_or_insert(Clock::Boot.now());
        let call = async {
            let answer = self.send(command).await;
            let lacks = |error: &redis::RedisError| {
                error.kind() == ErrorKind::Server(ServerErrorKind::NoScript)
            };
            let lacks = answer.as_ref().is_err_and(lacks);
            let Some(script) = lacks.then(|| script::called(command)).flatten() else {
                return answer;
            };
            self.repeats.fetch_add(1, Ordering::Relaxed);
            let load = script.load();
            // In one flight.
            let (loaded, answer) = join(self.send(&load), self.send(command)).await;
            loaded.and(answer)
        };
        match timeout(limit, call).await {
            Ok(answer) => answer.map_err(|error| Fault::of(&error)),
            Err(_) => Err(Fault::silent(limit)),
        }
    }

    /// How many requests were sent again so far. Such a request takes effect after requests that were
    /// sent meanwhile.
    pub(in super::super) fn repeats(&self) -> u64 {
        self.repeats.load(Ordering::Relaxed)
    }

    /// Whether the node has answered nothing for so long that a new connection is better.
    pub(super) fn is_silent(&self) -> bool {
        lock(&self.unanswered).is_some_and(|since| Clock::Boot.now().since(since) >= SILENCE)
    }

    async fn send(&self, command: &Cmd) -> RedisResult<Value> {
        // A clone is cheap (two counters), and the library needs one per call.
        let mut redis = self.opened.redis.clone();
        let (command, unanswered) = (command.clone(), self.unanswered.clone());
        let flight = Flight::new(async move {
            let answer = redis.send_packed_command(&command).await?;
            *lock(&unanswered) = None;
            Ok(answer)
        });
        flight.await?.extract_error()
    }
}
