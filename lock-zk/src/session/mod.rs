//! One ZooKeeper session: what it proves, what it owns, how it ends.

pub(crate) mod attempt;
pub(crate) mod deadline;
mod deletions;
pub(crate) mod deployment;
pub(crate) mod facts;
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
    sync::{Arc, Mutex, OnceLock, Weak},
    time::Duration,
};

use lock_core::{
    Clock, Effect, Error, Instant, LossReason, Result,
    deadline::jitter,
    duration::shown,
    keep::{leftovers::Leftovers, limits, poison::lock},
};
use tokio::sync::OwnedSemaphorePermit;
use tokio_util::sync::CancellationToken;
use uuid::Uuid;
use zookeeper_client::{Client, Error as ZkError, EventType};

use crate::{
    config::ZkConfig,
    error::{self, Meaning, STORE, vanished},
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
    client: Mutex<Option<Client>>,
    pub(crate) route: Arc<Route>,
    newest: tokio::sync::Mutex<Newest>,
    lanes: Lanes,
    attempts: Mutex<HashMap<Uuid, Arc<Attempt>>>,
    /// When the connection broke last, as far as is known.
    broken: Mutex<Instant>,
    /// Nodes that are still to be removed.
    pub(crate) left: Arc<Leftovers<Leftover>>,
    watches: Watches,
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

/// How a session ended for us.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub(crate) enum End {
    /// By [`DistributedLock::close`](lock_core::DistributedLock::close).
    Closed,
    /// The server ended it.
    Ended,
    /// The token floor was raised.
    Raised,
    /// No answer came for one TTL: every holder has been told by its deadline, so nothing is left
    /// to save.
    Silent,
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
            broken: Mutex::default(),
            left: Arc::new(Leftovers::new(again, again)),
            watches: Watches::new(client.path()),
            record: OnceLock::new(),
            client: Mutex::new(Some(client)),
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

    fn client(&self) -> Option<Client> {
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
        attempts.remove(&attempt);
        if attempts.is_empty() {
            self.deadline.set_used(false);
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

    /// Ends the session for us; the first reason counts. Holders and waiters are told at once.
    pub(crate) fn finish(&self, end: End) {
        if self.end.set(end).is_err() {
            return;
        }
        let reason = match end {
            End::Closed => LossReason::Closed,
            End::Ended | End::Silent => LossReason::SessionEnded,
            // As for the entries that the client that raises the floor deletes.
            End::Raised => LossReason::EntryGone,
        };
        for attempt in lock(&self.attempts).drain().map(|(_, attempt)| attempt) {
            if let Some(validity) = attempt.validity() {
                validity.lose(reason);
            }
        }
        lock(&self.client).take();
        self.over.cancel();
    }

    /// Learns from a request that failed. Ends the session for us if it was refused because the
    /// session is over.
    pub(crate) fn hear(&self, error: &ZkError) {
        match error::meaning(error) {
            Meaning::Over => self.finish(End::Ended),
            Meaning::Unanswered => self.broke(),
            _ => {}
        }
    }

    /// Remembers that the connection broke.
    pub(crate) fn broke(&self) {
        *lock(&self.broken) = Clock::Boot.now();
    }

    /// Whether the connection broke at this moment or later, and requests got no answer.
    pub(crate) fn broke_since(&self, then: Instant) -> bool {
        *lock(&self.broken) >= then
    }

    /// Whether it is over for us. The watch on the token floor's record ends it here, in whichever
    /// task asks first.
    pub(crate) fn is_over(&self) -> bool {
        let event = self.record.get().and_then(|(_, changed)| changed.clone().now());
        // The end of the session is an event of each watch, too.
        if event.is_some_and(|event| event != EventType::Session) {
            self.finish(End::Raised);
        }
        // Not `over`: another task may be about to tell the holders, and cancels only then.
        self.end.get().is_some()
    }

    /// Whether its end might not be told to a grant whose validity was set just now.
    pub(crate) fn may_not_tell(&self) -> bool {
        // `finish` sets the end first, and then looks for grants under this lock.
        let _order = lock(&self.attempts);
        self.end.get().is_some()
    }

    /// Waits until the token floor is raised, and ends the session.
    pub(crate) async fn end_when_raised(session: Weak<Self>, changed: Event) {
        changed.wait().await;
        let _ = session.upgrade().map(|session| session.is_over());
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

    pub(crate) fn end(&self) -> Option<End> {
        self.end.get().copied()
    }

    /// The error of a call after the end.
    pub(crate) fn error(&self, op: &'static str) -> Error {
        match self.end() {
            Some(End::Closed) => Error::closed(STORE),
            Some(End::Raised) => vanished(),
            Some(End::Silent) => {
                let why = format!("no answer for {}; the session is given up", shown(self.ttl()));
                error::unavailable(op, Effect::None, self.route.with_failure(&why))
            }
            Some(End::Ended) | None => {
                error::unavailable(op, Effect::None, "the server ended the session")
            }
        }
    }

    /// What ends an attempt: a close counts before what it does to the attempt's node, whichever the
    /// attempt sees first.
    pub(crate) fn ending(&self, error: Error) -> Error {
        match (&error, self.end()) {
            (Error::PlaceLost { .. }, Some(End::Closed)) => self.error("acquire"),
            _ => error,
        }
    }

    /// Ends the session and waits until the server has confirmed it.
    pub(crate) async fn close(&self) -> Result<()> {
        self.finish(End::Closed);
        let ended = Clock::Boot.timeout(limits::CLOSE, self.terminated.cancelled()).await;
        let why = "the server did not confirm the end of the session; it ends with its TTL";
        ended.ok_or_else(|| error::unavailable("close", Effect::Unknown, why))
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
