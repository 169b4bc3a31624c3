//! One ZooKeeper session: what it proves, what it owns, how it ends.

pub(crate) mod attempt;
pub(crate) mod deadline;
mod deletions;
pub(crate) mod deployment;
mod end;
mod janitor;
mod login;
pub(crate) mod pool;
mod proof;
mod renewal;
mod retry;
mod unwatched;

use std::{
    collections::HashMap,
    fmt,
    sync::{Arc, Mutex, OnceLock},
    time::Duration,
};

use lock_core::{
    Clock, Instant, Kind, LockName, Result,
    deadline::jitter,
    keep::{leftovers::Leftovers, poison::lock},
};
use tokio::sync::OwnedSemaphorePermit;
use tokio_util::sync::CancellationToken;
use uuid::Uuid;
use zookeeper_client::Client;

pub(crate) use self::end::End;

use crate::{
    config::ZkConfig,
    layout::{child, floor::Above},
    session::{
        attempt::{Attempt, Leftover},
        deadline::Deadline,
        unwatched::Unwatched,
    },
    wire::{
        login::Newest,
        requests::{Exchange, Lane, Lanes},
        route::Route,
        watches::{Event, Watches},
    },
};

/// One ZooKeeper session. All attempts of a client with the same TTL are in it.
pub(crate) struct Session {
    /// The owner of our ephemeral nodes.
    pub(crate) id: i64,
    pub(crate) config: Arc<ZkConfig>,
    pub(crate) deadline: Arc<Deadline>,
    /// `None` once the session is over for us; the client crate then closes it at the server as
    /// soon as it can.
    client: Mutex<Option<Arc<Client>>>,
    pub(crate) route: Arc<Route>,
    newest: tokio::sync::Mutex<Newest>,
    lanes: Lanes,
    attempts: Mutex<HashMap<Uuid, Arc<Attempt>>>,
    /// The exclusive attempt of each name whose node was made last.
    last: Mutex<HashMap<LockName, Arc<Attempt>>>,
    /// When the connection broke last, as far as is known.
    broken: Mutex<Instant>,
    /// Nodes that are still to be removed.
    pub(crate) left: Arc<Leftovers<Leftover>>,
    watches: Arc<Watches>,
    /// The token floor's record, from which all tokens of this session count, and its watch.
    record: OnceLock<(Above, Event)>,
    /// Attempts whose own nodes are not watched yet.
    pub(crate) unwatched: Unwatched,
    end: OnceLock<End>,
    /// Cancelled when the session is over for us.
    pub(crate) over: CancellationToken,
    /// The client crate has reached a final state: the server confirmed the end, or ends it itself.
    pub(crate) terminated: CancellationToken,
}

impl Session {
    /// Takes over a session whose handshake began at `sent`, with servers of this tick, and this
    /// login as its newest.
    pub(crate) fn new(
        client: Client,
        login: Option<String>,
        route: Arc<Route>,
        tick: Duration,
        sent: Instant,
    ) -> Self {
        let ttl = client.session_timeout();
        // The pause before a refused removal is tried again.
        let again = jitter(ttl.clamp(Duration::from_secs(1), Duration::from_secs(10)));
        Self {
            id: client.session_id().0,
            config: route.config.clone(),
            deadline: Arc::new(Deadline::new(ttl, tick, sent)),
            lanes: Lanes::new(),
            attempts: Mutex::default(),
            last: Mutex::default(),
            broken: Mutex::default(),
            left: Arc::new(Leftovers::new(again, again)),
            watches: Arc::new(Watches::new(client.path())),
            record: OnceLock::new(),
            client: Mutex::new(Some(Arc::new(client))),
            route,
            newest: tokio::sync::Mutex::new(Newest { login, since: None }),
            unwatched: Unwatched::default(),
            end: OnceLock::new(),
            over: CancellationToken::new(),
            terminated: CancellationToken::new(),
        }
    }

    pub(crate) fn ttl(&self) -> Duration {
        self.deadline.ttl
    }

    /// Starts an exchange at once, for a renewal, a release or a revoke.
    pub(crate) fn begin(&self) -> Result<Exchange> {
        self.exchange(None)
    }

    /// Starts an exchange when its lane has a free slot. So a burst of acquires or looks waits in
    /// this process, and the requests of holders do not wait behind it.
    pub(crate) async fn begin_in(&self, lane: Lane) -> Result<Exchange> {
        self.exchange(self.lanes.enter(lane).await)
    }

    fn exchange(&self, slot: Option<OwnedSemaphorePermit>) -> Result<Exchange> {
        // Taken before the sending: a request must not count as younger than it is.
        let sent = Clock::Boot.now();
        let client = self.client().ok_or_else(|| self.error("acquire"))?;
        let (deadline, watches) = (self.deadline.clone(), self.watches.clone());
        Ok(Exchange { deadline, client, sent, watches, _slot: slot })
    }

    fn client(&self) -> Option<Arc<Client>> {
        lock(&self.client).clone()
    }

    /// Adds an attempt before the request for its node.
    pub(crate) fn add(&self, attempt: &Arc<Attempt>) {
        let mut attempts = lock(&self.attempts);
        if attempts.is_empty() {
            self.deadline.set_used(true);
        }
        attempts.insert(attempt.id, attempt.clone());
    }

    /// Forgets an attempt whose node is gone.
    pub(crate) fn forget(&self, attempt: Uuid) {
        let mut attempts = lock(&self.attempts);
        let forgotten = attempts.remove(&attempt);
        if attempts.is_empty() {
            self.deadline.set_used(false);
        }
        drop(attempts);
        let Some(Attempt { request, .. }) = forgotten.as_deref() else { return };
        let mut last = lock(&self.last);
        if last.get(&request.name).is_some_and(|last| last.id == attempt) {
            last.remove(&request.name);
        }
    }

    /// Returns the exclusive attempt of a name whose node was made last in this session, as far as
    /// is known, unless it is forgotten.
    pub(crate) fn last(&self, name: &LockName) -> Option<Arc<Attempt>> {
        lock(&self.last).get(name).cloned()
    }

    /// Takes in an attempt whose node is known by now.
    pub(crate) fn entered(&self, attempt: &Arc<Attempt>) {
        self.unwatched.add(attempt);
        let token = |attempt: &Attempt| attempt.node().map(|node| node.token);
        let (name, mut last) = (&attempt.request.name, lock(&self.last));
        let is_last = last.get(name).is_none_or(|last| token(last) < token(attempt));
        if attempt.request.kind == Kind::Exclusive && is_last {
            last.insert(name.clone(), attempt.clone());
        }
    }

    /// Returns the attempt of this session to which a child's name belongs.
    pub(crate) fn own_attempt(&self, child: &str) -> Option<Arc<Attempt>> {
        let attempt = lock(&self.attempts).get(&child::attempt(child)?)?.clone();
        attempt.may_own(child).then_some(attempt)
    }

    /// Moves the deadlines of all locks, except those that have passed. Returns how many it moves.
    pub(crate) fn renew_all(&self) -> usize {
        let (now, until) = (Clock::Boot.now(), self.deadline.safe_until());
        let attempts = lock(&self.attempts);
        attempts.values().filter(|attempt| attempt.renew(now, until)).count()
    }

    /// Remembers that the connection broke.
    pub(crate) fn broke(&self) {
        *lock(&self.broken) = Clock::Boot.now();
    }

    /// Whether the connection broke at this moment or later, and requests got no answer.
    pub(crate) fn broke_since(&self, then: Instant) -> bool {
        *lock(&self.broken) >= then
    }

    /// Returns the token floor's record for nodes that earlier answers have told of.
    ///
    /// A server applies transactions in order, and tells a session of a change before it answers
    /// with anything later, also after a reconnect. So if the session is not over here, no raise is
    /// older than these answers.
    pub(crate) fn above(&self, op: &'static str) -> Result<Above> {
        match self.record.get() {
            Some((above, _)) if !self.is_over() => Ok(*above),
            _ => Err(self.error(op)),
        }
    }
}

impl Drop for Session {
    fn drop(&mut self) {
        // Before its tasks end: as long as there is a client, the client crate sends a request for
        // each watch that is dropped.
        lock(&self.client).take();
        self.over.cancel();
    }
}

impl fmt::Debug for Session {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Session")
            .field("id", &format_args!("{:#x}", self.id))
            .field("ttl", &self.ttl())
            .field("attempts", &lock(&self.attempts).len())
            .field("end", &self.end())
            .finish_non_exhaustive()
    }
}
