//! One of the servers, and the way to it.

mod debts;
mod process;
mod runs;

use std::{
    ops::Deref,
    sync::{
        Arc, Mutex, Weak,
        atomic::{AtomicBool, Ordering},
    },
    time::Duration,
};

use lock_core::{Clock, keep::backoff::Backoff};
use redis::{RedisError, Value, cmd};
use tokio::{sync::watch, time::timeout};

pub(super) use self::{
    debts::{Debt, Debts},
    runs::Runs,
};
use super::{fault::Fault, script};
use crate::{
    config::Address,
    error,
    wire::{
        call::Call,
        connection::{Connection, Connector},
        dial::Dial,
        failure::Failure,
        line::{Line, Link},
        sentinel::Server,
    },
};

/// After this time without any answer a connection is given up.
const SILENCE: Duration = Duration::from_secs(1);
/// Pauses between attempts to connect.
const BACKOFF: Backoff = Backoff::new(Duration::from_millis(20), Duration::from_secs(1));

/// One of the servers.
#[derive(Debug)]
pub(super) struct Node {
    line: Line,
    pub(super) address: Address,
    number: usize,
    runs: Arc<Runs>,
    /// Whether a request finds out if the node still answers.
    is_probed: AtomicBool,
    pub(super) debts: Mutex<Debts>,
}

impl Deref for Node {
    type Target = Line;

    fn deref(&self) -> &Line {
        &self.line
    }
}

impl Node {
    /// The node with this number in the list, not connected yet.
    pub(super) fn new(address: Address, number: usize, dial: Dial, runs: Arc<Runs>) -> Arc<Self> {
        let (scripts, server) = (script::all(), Server::Fixed(address.clone()));
        let connector = Connector { dial, server, scripts, channel: None };
        let line = Line::new(connector, Arc::default());
        let (is_probed, debts) = Default::default();
        Arc::new(Self { line, address, number, runs, is_probed, debts })
    }

    /// Keeps the node connected until it is dropped or closed.
    pub(super) fn stay_connected(self: &Arc<Self>) {
        tokio::spawn(keep_connected(Arc::downgrade(self), self.link()));
    }

    /// Makes a connection, and finds out whose it is.
    pub(super) async fn connect(&self) -> Result<(), Fault> {
        let connected = self.line.connect(|_, _| ()).await;
        let entered = connected.and_then(|connection| {
            let (run, uptime) = process::read(&connection.info)?;
            self.runs.enter(self.number, run, uptime)?;
            Ok(connection)
        });
        match entered {
            Ok(connection) => {
                self.up(connection);
                Ok(())
            }
            Err(error) => {
                self.stays_down(error.clone());
                Err(Fault::Down(error))
            }
        }
    }

    /// Whether there is a connection.
    pub(super) fn is_up(&self) -> bool {
        matches!(self.state(), Link::Up(_))
    }

    /// Whether the node was closed.
    pub(super) fn is_closed(&self) -> bool {
        matches!(self.state(), Link::Closed)
    }

    /// Returns the connection.
    pub(super) fn connected(&self) -> Result<Arc<Connection>, Fault> {
        self.connection().map_err(|failure| match failure {
            Failure::Down(error) => Fault::Down(error),
            _ => Fault::Down(error::closed_link()),
        })
    }

    /// Same as [`call`](Self::call) on the present connection, for an answer that counts as a vote:
    /// the answers of a node that may have forgotten its votes do not. Fails at once if there is no
    /// connection.
    pub(super) async fn vote(
        self: &Arc<Self>,
        call: &Call,
        limit: Duration,
    ) -> Result<Value, Fault> {
        self.vote_on(&self.connected()?, call, limit).await
    }

    /// Same as [`vote`](Self::vote), on this connection.
    pub(super) async fn vote_on(
        self: &Arc<Self>,
        connection: &Arc<Connection>,
        call: &Call,
        limit: Duration,
    ) -> Result<Value, Fault> {
        let answer = self.call(connection, call, limit).await?;
        match self.runs.counts_from(self.number).since(Clock::Boot.now()) {
            left if left.is_zero() => Ok(answer),
            left => Err(Fault::Young(left)),
        }
    }

    /// Sends one call, and waits for its answer. Fails after `limit` even if the node answers
    /// others.
    pub(super) async fn call(
        self: &Arc<Self>,
        connection: &Arc<Connection>,
        call: &Call,
        limit: Duration,
    ) -> Result<Value, Fault> {
        let answers = connection.answers();
        let answer = timeout(limit, connection.ask(call, script::may_come_late(call))).await;
        let is_late = answer.is_err();
        answer.unwrap_or_else(|_| Err(error::silent(limit))).map_err(|error| {
            let fault = Fault::of(error.clone());
            if is_late && (limit < SILENCE || connection.answers() != answers) {
                self.probe(connection);
            } else if matches!(fault, Fault::Lost(_)) {
                self.give_up(connection, error);
            }
            fault
        })
    }

    /// Finds out in the background whether a node that is late still answers: its answers come in the
    /// order of the requests.
    fn probe(self: &Arc<Self>, connection: &Arc<Connection>) {
        if self.is_probed.swap(true, Ordering::Relaxed) {
            return;
        }
        let (node, connection) = (Arc::downgrade(self), connection.clone());
        tokio::spawn(async move {
            let answer = connection.call(&cmd("PING").into(), SILENCE).await;
            let Some(node) = node.upgrade() else { return };
            node.is_probed.store(false, Ordering::Relaxed);
            if let Err(error) = answer {
                node.give_up(&connection, error);
            }
        });
    }

    /// Gives a connection up, unless there is a new one already.
    fn give_up(&self, connection: &Connection, error: RedisError) {
        self.lose(connection.number, error, |_| self.runs.leave(self.number));
    }
}

/// Connects a node whenever it has no connection, until it is closed or dropped.
async fn keep_connected(node: Weak<Node>, mut link: watch::Receiver<Link>) {
    let mut pause = BACKOFF;
    loop {
        let state = link.wait_for(|link| !matches!(link, Link::Up(_))).await;
        if !state.is_ok_and(|link| matches!(*link, Link::Down(..))) {
            return;
        }
        let Some(node) = node.upgrade() else { return };
        let connected = node.connect().await;
        drop(node);
        match connected {
            Ok(()) => pause = BACKOFF,
            Err(_) => tokio::select! {
                () = pause.wait() => {}
                _ = link.wait_for(|link| matches!(link, Link::Closed)) => return,
            },
        }
    }
}
