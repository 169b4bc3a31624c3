//! One of the servers, and the way to it.

mod debts;
mod identity;
mod keeper;
mod runs;

use std::{
    sync::{
        Arc, Mutex,
        atomic::{AtomicBool, AtomicU64, Ordering},
    },
    time::Duration,
};

use lock_core::{Clock, Instant, keep::poison::lock};
use redis::{ProtocolVersion, RedisError, Value, cmd};
use tokio::{sync::watch, time::timeout};

pub(super) use self::{
    debts::{Debt, Debts},
    identity::Identity,
    runs::Runs,
};
use super::{fault::Fault, script};
use crate::{
    config::Address,
    wire::{call::Call, client_id::ClientId, dial::Dial, pipe::Pipe},
};

/// After this time without any answer a connection is given up.
const SILENCE: Duration = Duration::from_secs(1);

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
    previous: Mutex<Option<ClientId>>,
    /// What the server said about itself at the latest connection.
    identity: Mutex<Option<Identity>>,
    pub(super) debts: Mutex<Debts>,
}

/// A connection to a node that is ready: the node is known, and has the scripts.
#[derive(Debug)]
pub(super) struct Line {
    pipe: Pipe,
    /// From when on the node's votes count.
    counts_from: Instant,
    /// Whether a request finds out if the node still answers.
    is_probed: AtomicBool,
}

impl Line {
    /// How many requests were sent again so far. Such a request takes effect after requests that
    /// were sent meanwhile.
    pub(super) fn repeats(&self) -> u64 {
        self.pipe.repeats()
    }
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
        let (connections, previous, identity, debts) = Default::default();
        Arc::new(Self { address, number, dial, runs, link, connections, previous, identity, debts })
    }

    /// Keeps the node connected until it is dropped or closed.
    pub(super) fn keep(self: &Arc<Self>) {
        tokio::spawn(keeper::keep_connected(Arc::downgrade(self), self.link.subscribe()));
    }

    /// Makes a connection.
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

    /// Also loads the scripts, asks who the node is, and lets it end the previous connection: so no
    /// request that is still on its way there takes effect after a request on this one.
    async fn open(&self) -> Result<Arc<Line>, Fault> {
        let fault = |error: RedisError| Fault::of(&error);
        // Without pushes, the older protocol does.
        let opened = self.dial.open(&self.address, ProtocolVersion::RESP2, self.dial.options());
        let pipe = Pipe::new(opened.await.map_err(fault)?);
        for script in script::all() {
            pipe.send(&script.load()).await.map_err(fault)?;
        }
        let identity = Identity::ask(&pipe).await?;
        let previous = lock(&self.previous).clone();
        let peer = pipe.peer().await;
        pipe.kill(previous.as_slice()).await.map_err(fault)?;
        let counts_from = self.runs.enter(self.number, &identity.run, identity.uptime)?;
        *lock(&self.identity) = Some(identity);
        *lock(&self.previous) = peer;
        self.connections.fetch_add(1, Ordering::Relaxed);
        Ok(Arc::new(Line { pipe, counts_from, is_probed: AtomicBool::new(false) }))
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
    pub(super) fn line(&self) -> Result<Arc<Line>, Fault> {
        match &*self.link.borrow() {
            Link::Up(line) => Ok(line.clone()),
            Link::Down(fault) => Err(fault.clone()),
            Link::Closed => Err(Fault::not_connected()),
        }
    }

    /// Sends one call and waits for its answer, as [`Pipe::call`] does. Fails at once if there is no
    /// connection, and after `limit` even if the node answers others.
    pub(super) async fn call(
        self: &Arc<Self>,
        call: &Call,
        limit: Duration,
    ) -> Result<Value, Fault> {
        self.answer(&self.line()?, call, limit).await
    }

    /// Same as [`call`](Self::call), for an answer that counts as a vote: the answers of a node
    /// that may have forgotten its votes do not.
    pub(super) async fn vote(
        self: &Arc<Self>,
        call: &Call,
        limit: Duration,
    ) -> Result<Value, Fault> {
        self.vote_on(&self.line()?, call, limit).await
    }

    /// Same as [`vote`](Self::vote), on this connection.
    pub(super) async fn vote_on(
        self: &Arc<Self>,
        line: &Arc<Line>,
        call: &Call,
        limit: Duration,
    ) -> Result<Value, Fault> {
        let answer = self.answer(line, call, limit).await?;
        match line.counts_from.since(Clock::Boot.now()) {
            left if left.is_zero() => Ok(answer),
            left => Err(Fault::young(left)),
        }
    }

    async fn answer(
        self: &Arc<Self>,
        line: &Arc<Line>,
        call: &Call,
        limit: Duration,
    ) -> Result<Value, Fault> {
        let answers = line.pipe.answers();
        let Ok(answer) = timeout(limit, line.pipe.ask(call, false)).await else {
            let fault = Fault::silent(limit);
            match limit >= SILENCE && line.pipe.answers() == answers {
                true => self.give_up(line, &fault),
                false => self.probe(line),
            }
            return Err(fault);
        };
        answer.map_err(|error| {
            let fault = Fault::of(&error);
            if fault.breaks() {
                self.give_up(line, &fault);
            }
            fault
        })
    }

    /// Finds out in the background whether a node that is late still answers: its answers come in the
    /// order of the requests.
    fn probe(self: &Arc<Self>, line: &Arc<Line>) {
        if line.is_probed.swap(true, Ordering::Relaxed) {
            return;
        }
        let (node, line) = (Arc::downgrade(self), line.clone());
        tokio::spawn(async move {
            let answer = line.pipe.call(&cmd("PING").into(), false, SILENCE).await;
            line.is_probed.store(false, Ordering::Relaxed);
            if let (Err(error), Some(node)) = (answer, node.upgrade()) {
                node.give_up(&line, &Fault::of(&error));
            }
        });
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
