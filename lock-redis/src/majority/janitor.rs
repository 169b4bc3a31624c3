//! Taking votes back from a node that did not confirm it at once.

use std::{
    collections::VecDeque,
    sync::{Arc, Mutex, Weak},
    time::Duration,
};

use futures_util::future::join_all;
use lock_core::{
    Clock, Instant,
    keep::{backoff::Backoff, poison::lock},
};
use redis::Cmd;

use super::{fault::Fault, node::Node};

/// The time limit of one request.
pub(super) const LIMIT: Duration = Duration::from_secs(1);
/// The pauses before requests that failed are sent again.
const FIRST: Duration = Duration::from_millis(100);
const LONGEST: Duration = Duration::from_secs(1);
/// How many requests are under way at the same time: votes must not wait behind them.
const AT_ONCE: usize = 32;
/// The greatest number of requests that are remembered. The oldest go first, and their votes end
/// with their TTL.
const MOST: usize = 4096;

/// Takes votes back from one node, for all attempts, with one task at most.
#[derive(Debug)]
pub(super) struct Janitor {
    /// A client that is gone keeps no connection for this, except for votes that last.
    node: Weak<Node>,
    owed: Mutex<Owed>,
}

#[derive(Debug, Default)]
struct Owed {
    debts: VecDeque<Debt>,
    is_working: bool,
}

/// A vote that is to be taken back.
#[derive(Debug)]
pub(super) struct Debt {
    command: Arc<Cmd>,
    ttl: Duration,
    given_up: Instant,
    /// The number of the connection on which the request for the vote may still lie.
    connection: u64,
    /// When the vote is over, if that is known.
    ///
    /// A server that is stalled may act on a request long after the client has given it up, and the
    /// vote then lasts for a whole TTL. So a TTL counts from when the server has answered on that
    /// connection, or a newer connection has ended it.
    until: Option<Instant>,
}

impl Debt {
    /// A vote that the node may have, or may get from a request that was sent to it.
    pub(super) fn new(command: Arc<Cmd>, ttl: Duration, node: &Node) -> Self {
        let (given_up, connection) = (Clock::Boot.now(), node.connections());
        Self { command, ttl, given_up, connection, until: None }
    }

    /// Whether the vote may last after a request to take it back has failed, on the connection with
    /// this number.
    fn lasts(&mut self, fault: &Fault, connection: u64) -> bool {
        let now = Clock::Boot.now();
        if connection > self.connection || fault.is_answer() {
            self.until.get_or_insert(now + self.ttl);
        }
        self.until.is_none_or(|until| until > now)
    }
}

impl Janitor {
    pub(super) fn new(node: &Arc<Node>) -> Arc<Self> {
        Arc::new(Self { node: Arc::downgrade(node), owed: Mutex::default() })
    }

    /// Takes a vote back as soon as the node can be reached.
    pub(super) fn owe(self: &Arc<Self>, debt: Debt) {
        let mut owed = lock(&self.owed);
        owed.put(debt);
        if !owed.is_working {
            owed.is_working = true;
            tokio::spawn(self.clone().work());
        }
    }

    async fn work(self: Arc<Self>) {
        let (mut backoff, mut held) = (Backoff::new(FIRST, LONGEST), None);
        while let Some(node) = held.take().or_else(|| self.node.upgrade()) {
            node.connected(LONGEST).await;
            if node.is_closed() {
                break;
            }
            if node.is_up() {
                let Some(debts) = self.next() else { return };
                match self.ask(&node, debts).await {
                    true => backoff = Backoff::new(FIRST, LONGEST),
                    false => backoff.wait().await,
                }
            }
            held = self.has_young().then_some(node);
        }
        *lock(&self.owed) = Owed::default();
    }

    /// Takes the next debts; `None` if there is none, and then the work is over.
    fn next(&self) -> Option<Vec<Debt>> {
        let mut owed = lock(&self.owed);
        let count = owed.debts.len().min(AT_ONCE);
        owed.is_working = count > 0;
        (count > 0).then(|| owed.debts.drain(..count).collect())
    }

    /// Sends a request for each debt. Those that fail are remembered. Returns whether none has.
    async fn ask(&self, node: &Node, debts: Vec<Debt>) -> bool {
        let connection = node.connections();
        let ask = async |mut debt: Debt| match node.call(&debt.command, LIMIT).await {
            Ok(_) => None,
            Err(fault) => debt.lasts(&fault, connection).then_some(debt),
        };
        let failed: Vec<_> = join_all(debts.into_iter().map(ask)).await;
        let failed: Vec<_> = failed.into_iter().flatten().collect();
        let none = failed.is_empty();
        let mut owed = lock(&self.owed);
        failed.into_iter().for_each(|debt| owed.put(debt));
        none
    }

    /// Whether a vote may still be there that was given up less than a TTL ago.
    fn has_young(&self) -> bool {
        let now = Clock::Boot.now();
        lock(&self.owed).debts.iter().any(|debt| debt.given_up + debt.ttl > now)
    }
}

impl Owed {
    fn put(&mut self, debt: Debt) {
        if self.debts.len() >= MOST {
            self.debts.pop_front();
        }
        self.debts.push_back(debt);
    }
}
