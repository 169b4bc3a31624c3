//! One of the servers, and the way to it.

mod flight;
mod identity;
mod keeper;
mod line;
mod runs;

use std::{
    sync::{
        Arc, Mutex,
        atomic::{AtomicU64, Ordering},
    },
    time::Duration,
};

use lock_core::{Clock, keep::poison::lock};
use redis::{Cmd, ProtocolVersion, Value};
use tokio::{sync::watch, time::timeout};

pub(super) use self::{identity::Identity, line::Line, runs::Runs};
use super::fault::Fault;
use crate::{
    config::Address,
    wire::{dial::Dial, peer::Peer},
};

/// One of the servers.
#[derive(Debug)]
pub(super) struct Node {
    pub(super) address: Address,
    number: usize,
    dial: Dial,
    runs: Arc<Runs>,
    link: watch::Sender<Link>,
    /// How many connections were made so far.
    connections: AtomicU64,
    /// The latest connection, which the node ends when there is a new one.
    previous: Mutex<Option<Peer>>,
    /// What the server said about itself at the latest connection.
    identity: Mutex<Option<Identity>>,
}

#[derive(Clone, Debug)]
enum Link {
    Up(Arc<Line>),
    Down(Fault),
    Closed,
}

impl Node {
    /// The node with this number in the list, not connected yet.
    pub(super) fn new(address: Address, number: usize, dial: Dial, runs: Arc<Runs>) -> Arc<Self> {
        let link = watch::Sender::new(Link::Down(Fault::not_connected()));
        let (connections, previous, identity) = Default::default();
        Arc::new(Self { address, number, dial, runs, link, connections, previous, identity })
    }

    /// Keeps the node connected until it is dropped or closed.
    pub(super) fn keep(self: &Arc<Self>) {
        tokio::spawn(keeper::keep_connected(Arc::downgrade(self), self.link.subscribe()));
    }

    /// Makes a connection.
    ///
    /// # Errors
    ///
    /// The reason why there is none.
    ///
    /// # Cancel safety
    ///
    /// Dropping the future closes the connection.
    pub(super) async fn connect(&self) -> Result<(), Fault> {
        let limit = self.dial.limit;
        let opened = timeout(limit, self.open()).await;
        let opened = opened.unwrap_or_else(|_| Err(Fault::silent(limit).down()));
        if opened.is_err() {
            self.runs.leave(self.number);
        }
        self.set(match &opened {
            Ok(line) => Link::Up(line.clone()),
            Err(fault) => Link::Down(fault.clone().down()),
        });
        opened.map(drop)
    }

    async fn open(&self) -> Result<Arc<Line>, Fault> {
        let options = self.dial.options();
        let options = options.set_connection_timeout(None).set_response_timeout(None);
        // Without pushes, the older protocol does.
        let opened = self.dial.open(&self.address, ProtocolVersion::RESP2, options).await;
        let mut line = Line::new(opened.map_err(|error| Fault::of(&error))?);
        let previous = lock(&self.previous).clone();
        let identity = line.prepare(previous.as_ref()).await?;
        line.counts_from = self.runs.enter(self.number, &identity.run, identity.uptime)?;
        *lock(&self.identity) = Some(identity);
        lock(&self.previous).clone_from(&line.peer);
        self.connections.fetch_add(1, Ordering::Relaxed);
        Ok(Arc::new(line))
    }

    /// Returns what the server said about itself at the latest connection, if there was one.
    pub(super) fn identity(&self) -> Option<Identity> {
        lock(&self.identity).clone()
    }

    fn set(&self, link: Link) {
        self.link.send_if_modified(|now| {
            let open = !matches!(now, Link::Closed);
            if open {
                *now = link;
            }
            open
        });
    }

    /// Ends the connection for good.
    pub(super) fn close(&self) {
        self.link.send_replace(Link::Closed);
    }

    /// Whether the connection has ended for good.
    pub(super) fn is_closed(&self) -> bool {
        matches!(*self.link.borrow(), Link::Closed)
    }

    /// Whether there is a connection.
    pub(super) fn is_up(&self) -> bool {
        matches!(*self.link.borrow(), Link::Up(_))
    }

    /// How many connections were made so far. Each has ended the one before it.
    pub(super) fn connections(&self) -> u64 {
        self.connections.load(Ordering::Relaxed)
    }

    /// Returns the connection.
    ///
    /// # Errors
    ///
    /// The reason why there is none.
    pub(super) fn line(&self) -> Result<Arc<Line>, Fault> {
        match &*self.link.borrow() {
            Link::Up(line) => Ok(line.clone()),
            Link::Down(fault) => Err(fault.clone()),
            Link::Closed => Err(Fault::not_connected()),
        }
    }

    /// Sends one command and waits for its answer. Fails at once if there is no connection.
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
        self.answer(&self.line()?, command, limit).await
    }

    /// Same as [`call`](Self::call), for an answer that counts as a vote: the answers of a node
    /// that may have forgotten its votes do not.
    pub(super) async fn vote(&self, command: &Cmd, limit: Duration) -> Result<Value, Fault> {
        self.vote_on(&self.line()?, command, limit).await
    }

    /// Same as [`vote`](Self::vote), on this connection.
    pub(super) async fn vote_on(
        &self,
        line: &Arc<Line>,
        command: &Cmd,
        limit: Duration,
    ) -> Result<Value, Fault> {
        let answer = self.answer(line, command, limit).await?;
        match line.counts_from.since(Clock::Boot.now()) {
            left if left.is_zero() => Ok(answer),
            left => Err(Fault::young(left)),
        }
    }

    async fn answer(
        &self,
        line: &Arc<Line>,
        command: &Cmd,
        limit: Duration,
    ) -> Result<Value, Fault> {
        let answer = line.call(command, limit).await;
        if let Err(fault) = &answer
            && (fault.breaks() || line.is_silent())
        {
            self.give_up(line, fault);
        }
        answer
    }

    /// Marks a connection as broken, unless there is a new one already.
    fn give_up(&self, line: &Arc<Line>, fault: &Fault) {
        self.link.send_if_modified(|link| {
            let present = matches!(link, Link::Up(now) if Arc::ptr_eq(now, line));
            if present {
                *link = Link::Down(fault.clone().down());
                self.runs.leave(self.number);
            }
            present
        });
    }

    /// Waits until there is a connection; at most this long.
    pub(super) async fn connected(&self, limit: Duration) {
        let mut link = self.link.subscribe();
        let _ = timeout(limit, link.wait_for(|link| !matches!(link, Link::Down(_)))).await;
    }
}
