//! One connection to one server: who it is, whether it works, and what becomes of a request.

use std::{
    fmt,
    sync::{
        Arc, Mutex,
        atomic::{AtomicBool, AtomicU64, Ordering},
    },
    time::Duration,
};

use lock_core::{
    Attempt, Reach,
    keep::{cancel::unless_cancelled, departures::Departures, poison::lock},
    trace,
};
use redis::{RedisError, Value};
use tokio::{
    sync::{Notify, Semaphore, watch},
    time::timeout,
};

use super::due::Due;
use crate::{
    config::Address,
    error::{self, STORE},
    wire::{
        call::Call,
        client_id::ClientId,
        connection::{Connection, Connector, OnPush, Share},
        data::Data,
        failure::Failure,
    },
};

/// The most releases in flight at a node with a request each. While there are that many, others go
/// together.
const ALONE: usize = 64;

/// One server, or the primary of a service, and the present connection to it.
pub(crate) struct Node {
    pub(crate) connector: Connector,
    link: watch::Sender<Link>,
    /// Told when a connection breaks.
    pub(crate) reach: Reach,
    /// Counts the connections of all nodes of a client.
    numbers: Arc<AtomicU64>,
    /// The last connection to a server that is not the primary any more. Its late answers do not
    /// count.
    left: AtomicU64,
    is_retired: AtomicBool,
    /// Whether a request has succeeded on the last connection.
    has_served: AtomicBool,
    /// Told when a connection may succeed by now.
    may_be_back: Notify,
    /// The data of the last server.
    data: Mutex<Option<Data>>,
    /// The attempts that are to be renewed there now.
    pub(super) due: Due,
    /// Permits of releases with a request each.
    pub(super) alone: Semaphore,
    /// The other releases.
    pub(super) departures: Departures<Arc<super::attempt::Attempt>>,
}

/// The present connection, or why there is none.
#[derive(Clone, Debug)]
pub(crate) enum Link {
    Up(Arc<Connection>),
    /// Why, and the server's names for the previous connection.
    Down(Arc<RedisError>, Vec<ClientId>),
    Closed,
}

impl Node {
    /// A node without a connection.
    pub(crate) fn new(connector: Connector, reach: Reach, numbers: Arc<AtomicU64>) -> Self {
        let unused = std::io::Error::from(std::io::ErrorKind::NotConnected);
        let link = watch::Sender::new(Link::Down(Arc::new(unused.into()), Vec::new()));
        Self {
            connector,
            link,
            reach: reach.of_one_server(),
            numbers,
            left: AtomicU64::new(0),
            is_retired: AtomicBool::new(false),
            has_served: AtomicBool::new(false),
            may_be_back: Notify::new(),
            data: Mutex::default(),
            due: Due::default(),
            alone: Semaphore::new(ALONE),
            departures: Departures::default(),
        }
    }

    /// Makes a connection, which counts only after [`up`](Self::up). `on_push` gets the number of
    /// the connection with each push.
    pub(crate) async fn connect(
        &self,
        previous: &[ClientId],
        on_push: impl Fn(u64, redis::PushInfo) + Send + Sync + 'static,
    ) -> Result<Connection, RedisError> {
        let number = self.numbers.fetch_add(1, Ordering::Relaxed) + 1;
        let on_push: OnPush = Arc::new(move |info| on_push(number, info));
        self.connector.connect(number, previous, on_push).await
    }

    /// Uses a connection from now on, unless the node was closed.
    pub(crate) fn up(&self, connection: Connection) {
        self.has_served.store(false, Ordering::Relaxed);
        self.link.send_if_modified(|link| match link {
            Link::Closed => false,
            // It closes the connection.
            _ if self.is_retired() => false,
            _ => {
                *link = Link::Up(Arc::new(connection));
                true
            }
        });
    }

    /// Notes why no connection can be made.
    pub(crate) fn stays_down(&self, error: RedisError) {
        self.link.send_modify(|link| {
            if let Link::Down(why, _) = link {
                *why = Arc::new(error);
            }
        });
    }

    /// Gives up the connection with this number, unless it was given up before. Returns whether it
    /// was the present one.
    pub(crate) fn lose(&self, number: u64, error: RedisError) -> bool {
        self.link.send_if_modified(|link| match link {
            Link::Up(connection) if connection.number == number => {
                trace::disconnected(STORE, &error);
                self.reach.broke(&error);
                *link = Link::Down(Arc::new(error), connection.peers.clone());
                true
            }
            _ => false,
        })
    }

    /// Gives up a connection because another server is the primary now. Answers that come on it from
    /// now on do not count.
    pub(crate) fn leave(&self, number: u64, why: RedisError) {
        self.left.fetch_max(number, Ordering::AcqRel);
        self.lose(number, why);
    }

    /// Whether a connection is one that was left.
    pub(crate) fn is_left(&self, number: u64) -> bool {
        number <= self.left.load(Ordering::Acquire)
    }

    /// Notes the data of a new connection's server. Returns whether another server has taken over
    /// since the last connection.
    pub(crate) fn meets(&self, connection: &Connection) -> bool {
        let now = &connection.data;
        if now.is_replica {
            // It has the history of its primary, and takes over nothing yet.
            return false;
        }
        let before = lock(&self.data).replace(now.clone());
        before.is_some_and(|before| now.took_over_from(&before))
    }

    /// Notes which node had the slots of this one before, which is at `address`.
    pub(crate) fn follows(&self, earlier: &Self, address: &Address) {
        let data = lock(&earlier.data).as_ref().map(|data| data.at(address));
        *lock(&self.data) = data;
    }

    /// Gives the node up: it has no slots any more. Its answers do not count from now on.
    pub(crate) fn retire(&self) {
        self.is_retired.store(true, Ordering::Release);
        self.left.store(u64::MAX, Ordering::Release);
        if let Link::Up(connection) = self.state() {
            let why = "the node has no slots any more";
            let why = std::io::Error::new(std::io::ErrorKind::ConnectionReset, why);
            self.lose(connection.number, why.into());
        }
    }

    /// Whether the node was given up.
    pub(crate) fn is_retired(&self) -> bool {
        self.is_retired.load(Ordering::Acquire)
    }

    /// Whether a request has succeeded on the last connection.
    pub(super) fn has_served(&self) -> bool {
        self.has_served.load(Ordering::Relaxed)
    }

    /// Ends the pause before the next attempt to connect: another server takes over.
    pub(crate) fn hurry(&self) {
        self.may_be_back.notify_one();
    }

    /// Waits until somebody calls [`hurry`](Self::hurry).
    pub(crate) async fn hurried(&self) {
        self.may_be_back.notified().await;
    }

    /// Ends the node. Returns what it was before.
    pub(crate) fn close(&self) -> Link {
        self.link.send_replace(Link::Closed)
    }

    /// Returns the present state.
    pub(crate) fn state(&self) -> Link {
        self.link.borrow().clone()
    }

    /// Returns a receiver of the connection's changes.
    pub(crate) fn link(&self) -> watch::Receiver<Link> {
        self.link.subscribe()
    }

    /// Sends a call on the present connection, as [`Connection::call`] does.
    pub(crate) async fn call(
        &self,
        call: &Call,
        asking: bool,
        share: Share,
        limit: Duration,
    ) -> Result<(Value, Option<u32>), Failure> {
        let connection = self.connection()?;
        let answer = connection.call(call, asking, share, limit).await;
        self.judge(&connection, answer)
    }

    /// Sends a command that changes no lock.
    pub(super) async fn ask(&self, command: redis::Cmd, limit: Duration) -> Result<Value, Failure> {
        Ok(self.call(&command.into(), false, Share::Others, limit).await?.0)
    }

    /// Returns the present connection.
    pub(crate) fn connection(&self) -> Result<Arc<Connection>, Failure> {
        match &*self.link.borrow() {
            Link::Up(connection) => Ok(connection.clone()),
            Link::Down(error, _) => Err(Failure::Down(error.clone())),
            Link::Closed => Err(Failure::Closed),
        }
    }

    /// Converts an answer for the caller. Gives up the connection if the answer shows that it is
    /// useless.
    pub(crate) fn judge<T>(
        &self,
        connection: &Connection,
        answer: Result<T, RedisError>,
    ) -> Result<T, Failure> {
        if answer.is_ok() && self.is_left(connection.number) {
            let why = "the server that answered is not the primary any more";
            let why = std::io::Error::new(std::io::ErrorKind::ConnectionReset, why);
            return Err(Failure::Lost(why.into()));
        }
        if answer.is_ok() {
            self.has_served.store(true, Ordering::Relaxed);
        }
        answer.map_err(|error| {
            let broken = error::is_broken(&error);
            // If the server is a replica now, the address may lead to the new primary.
            if broken || error::is_replica(&error) {
                self.lose(connection.number, error.clone());
            }
            if broken { Failure::Lost(error) } else { Failure::Refused(error) }
        })
    }

    /// Waits for a connection; false if there is none in time, or the caller is cancelled.
    pub(crate) async fn until_up(&self, limit: Duration, caller: Option<&Attempt>) -> bool {
        let mut link = self.link.subscribe();
        let there = |link: &Link| !matches!(link, Link::Down(..));
        let up = async { timeout(limit, link.wait_for(there)).await.is_ok() };
        unless_cancelled(caller, up).await.unwrap_or_default()
    }
}

impl fmt::Debug for Node {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Node").field("link", &*self.link.borrow()).finish_non_exhaustive()
    }
}
