//! The nodes together, as a store that has one entry per name.

use std::{
    io,
    sync::{
        Arc,
        atomic::{AtomicU64, Ordering},
    },
    time::Duration,
};

use async_trait::async_trait;
use futures_util::{future::BoxFuture, stream::FuturesUnordered};
use lock_core::{
    Clock, Entry, FencingToken, Guarantees, Instant, LockName, Request, polling::PolledStore,
};
use redis::Value;
use tokio::{sync::watch, time::timeout};
use uuid::Uuid;

use super::{
    asked::Asked,
    config::RedlockConfig,
    fault::Fault,
    node::Node,
    script::{self, Answer},
    tally::quorum,
    vote::Vote,
};
use crate::{RedisConfig, layout::key::Key, wire::call::Call};

/// A close waits this long for what is under way: an acquire, and then its take-backs.
const CLOSING: Duration = Duration::from_secs(3);

/// The nodes together.
#[derive(Debug)]
pub(super) struct Majority {
    pub(super) nodes: Vec<Arc<Node>>,
    pub(super) asked: Arc<Asked>,
    pub(super) config: RedlockConfig,
    /// What all nodes have in common.
    pub(super) server: RedisConfig,
    pub(super) guarantees: Guarantees,
    ballots: AtomicU64,
    /// Its receivers are the acquires and take-backs under way: a close waits for them.
    under_way: watch::Sender<()>,
}

/// The answers of nodes, each with the node's number, as they arrive.
pub(super) type Answers<T> = FuturesUnordered<BoxFuture<'static, (usize, Result<T, Fault>)>>;

impl Majority {
    pub(super) fn new(
        nodes: Vec<Arc<Node>>,
        config: RedlockConfig,
        guarantees: Guarantees,
    ) -> Self {
        let (asked, server) = (Arc::default(), config.server());
        let (ballots, under_way) = (AtomicU64::new(0), watch::Sender::new(()));
        Self { nodes, asked, config, server, guarantees, ballots, under_way }
    }

    /// The number of nodes that must agree.
    pub(super) fn needed(&self) -> usize {
        quorum(self.nodes.len())
    }

    pub(super) fn key(&self, name: &LockName) -> Key {
        Key::new(&self.server, name)
    }

    /// Something begins that a close waits for, until what this returns is dropped.
    pub(super) fn begin(&self) -> watch::Receiver<()> {
        self.under_way.subscribe()
    }

    /// Waits until nothing is under way, for a limited time and until the deadline at most, and ends
    /// the connections.
    pub(super) async fn close(&self, deadline: Instant) {
        let limit = CLOSING.min(deadline.since(Clock::Boot.now()));
        let _ = timeout(limit, self.under_way.closed()).await;
        self.nodes.iter().for_each(|node| node.close());
    }

    /// Returns the number of the next try.
    pub(super) fn next_ballot(&self) -> u64 {
        self.ballots.fetch_add(1, Ordering::Relaxed) + 1
    }

    /// Sends a call to all nodes at the same time. Each has `limit` to answer. An answer of a
    /// node whose votes do not count is a fault.
    pub(super) fn ask_all<T: Send + 'static>(
        &self,
        call: Call,
        limit: Duration,
        read: fn(&Value) -> Option<T>,
    ) -> Answers<T> {
        let call = Arc::new(call);
        let ask = |(number, node): (usize, &Arc<Node>)| -> BoxFuture<'static, _> {
            let (node, call) = (node.clone(), call.clone());
            Box::pin(async move {
                let answer = node.vote(&call, limit).await;
                (number, answer.and_then(|value| read(&value).ok_or_else(|| Fault::odd(&value))))
            })
        };
        self.nodes.iter().enumerate().map(ask).collect()
    }

    /// Asks some nodes for their votes, and records which of them may have got the request.
    pub(super) fn ask_for_votes(
        &self,
        nodes: impl IntoIterator<Item = usize>,
        request: &Request,
        vote: &Vote,
        candidate: u64,
    ) -> Answers<Answer> {
        let call = script::acquire(&self.key(&request.name), request, vote, candidate);
        let (call, limit) = (Arc::new(call), self.config.request_limit(request.ttl));
        let (attempt, ttl) = (vote.attempt, request.ttl);
        let ask = |number: usize| -> BoxFuture<'static, _> {
            let (node, call) = (self.nodes[number].clone(), call.clone());
            let asked = self.asked.clone();
            let vote = async move {
                let connection = node.connected()?;
                asked.record(attempt, number, ttl);
                let value = node.vote_on(&connection, &call, limit).await?;
                script::voted(&value).ok_or_else(|| Fault::odd(&value))
            };
            Box::pin(async move { (number, vote.await) })
        };
        nodes.into_iter().map(ask).collect()
    }

    /// Returns the error of a request that too few nodes have answered.
    pub(super) fn outage<'a>(
        &self,
        faults: impl IntoIterator<Item = (usize, &'a Fault)>,
    ) -> io::Error {
        let (faults, of): (Vec<_>, _) = (faults.into_iter().collect(), self.nodes.len());
        self.outage_of(&format!("{} of {of} nodes count", of - faults.len()), faults)
    }

    /// Same as [`outage`](Self::outage). `had` says how many nodes did what a majority must do.
    pub(super) fn outage_of<'a>(
        &self,
        had: &str,
        faults: impl IntoIterator<Item = (usize, &'a Fault)>,
    ) -> io::Error {
        let (faults, needed): (Vec<_>, _) = (faults.into_iter().collect(), self.needed());
        // Only if no outage ends it.
        let lasts = |kind: &io::ErrorKind| {
            let alike = faults.iter().filter(|(_, fault)| fault.kind() == *kind);
            alike.count() > self.nodes.len() - needed
        };
        let lasting = [io::ErrorKind::PermissionDenied, io::ErrorKind::InvalidData];
        let kind = lasting.into_iter().find(lasts).unwrap_or(io::ErrorKind::NotConnected);
        let reason =
            |(number, fault): &(usize, _)| format!("{}: {fault}", self.nodes[*number].address);
        let reasons: Vec<_> = faults.iter().map(reason).collect();
        io::Error::new(kind, format!("{had}, and {needed} are needed: {}", reasons.join("; ")))
    }
}

#[async_trait]
impl PolledStore for Majority {
    fn guarantees(&self) -> &Guarantees {
        &self.guarantees
    }

    /// [`acquire`](Self::acquire) takes the votes of a try that failed back.
    fn cleans_up(&self) -> bool {
        true
    }

    fn is_closed(&self) -> bool {
        self.nodes.iter().all(|node| node.is_closed())
    }

    async fn take(&self, request: &Request, attempt: Uuid) -> io::Result<Option<FencingToken>> {
        self.acquire(request, attempt).await
    }

    async fn renew(&self, request: &Request, attempt: Uuid) -> io::Result<bool> {
        self.renew_votes(request, attempt).await
    }

    async fn remove(&self, name: &LockName, attempt: Uuid) -> io::Result<bool> {
        self.release(name, attempt).await
    }

    async fn holder(&self, name: &LockName) -> io::Result<Option<Entry>> {
        self.look(name).await
    }

    async fn names(&self, prefix: &str) -> io::Result<Vec<LockName>> {
        self.scan(prefix).await
    }
}
