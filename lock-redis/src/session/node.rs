//! One server as the attempts see it: who it is, whether its answers count, and what is to be done
//! there.

use std::{
    ops::Deref,
    sync::{
        Arc, Mutex,
        atomic::{AtomicBool, AtomicU64, Ordering},
    },
    time::Duration,
};

use lock_core::{
    Reach,
    keep::{departures::Departures, poison::lock},
    trace,
};
use redis::{RedisError, Value};
use tokio::sync::{Notify, Semaphore};

use super::to_renew::ToRenew;
pub(crate) use crate::wire::line::Link;
use crate::{
    config::Address,
    error::{self, STORE},
    wire::{
        call::Call,
        connection::{Connection, Connector},
        data::Data,
        failure::Failure,
        line::Line,
    },
};

/// The most releases in flight at a node with a request each. While there are that many, others go
/// together.
const ALONE: usize = 64;
/// The number of no connection: all were left.
const RETIRED: u64 = u64::MAX;

/// One server, or the primary of a service.
#[derive(Debug)]
pub(crate) struct Node {
    line: Line,
    /// Told when a connection breaks.
    pub(crate) reach: Reach,
    /// The last connection to a server that is not the primary any more, or [`RETIRED`]. Its late
    /// answers do not count.
    left: AtomicU64,
    /// Whether a request has succeeded on the last connection.
    has_served: AtomicBool,
    /// Told when another server takes over: that ends the pause before the next attempt to connect.
    pub(super) hurry: Notify,
    /// The data of the last server.
    data: Mutex<Option<Data>>,
    /// The attempts that are to be renewed there now.
    pub(super) to_renew: ToRenew,
    /// Permits of releases with a request each.
    pub(super) alone: Semaphore,
    /// The other releases.
    pub(super) departures: Departures<Arc<super::attempt::Attempt>>,
}

impl Deref for Node {
    type Target = Line;

    fn deref(&self) -> &Line {
        &self.line
    }
}

impl Node {
    /// A node without a connection. `numbers` counts the connections of all nodes of a client.
    pub(crate) fn new(connector: Connector, reach: Reach, numbers: Arc<AtomicU64>) -> Self {
        Self {
            line: Line::new(connector, numbers),
            reach: reach.of_one_server(),
            left: AtomicU64::new(0),
            has_served: AtomicBool::new(false),
            hurry: Notify::new(),
            data: Mutex::default(),
            to_renew: ToRenew::default(),
            alone: Semaphore::new(ALONE),
            departures: Departures::default(),
        }
    }

    /// Uses a connection from now on, unless the node was closed or given up.
    pub(crate) fn up(&self, connection: Connection) {
        self.has_served.store(false, Ordering::Relaxed);
        self.line.up(connection);
        if self.is_retired() {
            self.retire();
        }
    }

    /// Gives up the connection with this number, unless it was given up before.
    pub(crate) fn lose(&self, number: u64, error: RedisError) {
        self.line.lose(number, error, |error| {
            trace::disconnected(STORE, error);
            self.reach.broke(error);
        });
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
        if connection.info.is_replica() {
            // It has the history of its primary, and takes over nothing yet.
            return false;
        }
        let now = Data::read(&connection.address, &connection.info);
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
        self.left.store(RETIRED, Ordering::Release);
        if let Link::Up(connection) = self.state() {
            self.lose(connection.number, error::reset("the node has no slots any more"));
        }
    }

    /// Whether the node was given up.
    pub(crate) fn is_retired(&self) -> bool {
        self.left.load(Ordering::Acquire) == RETIRED
    }

    /// Whether a request has succeeded on the last connection.
    pub(super) fn has_served(&self) -> bool {
        self.has_served.load(Ordering::Relaxed)
    }

    /// Sends a call on the present connection, as [`Connection::call`] does.
    pub(crate) async fn call(
        &self,
        call: &Call,
        limit: Duration,
    ) -> Result<(Value, Option<u32>), Failure> {
        let connection = self.connection()?;
        let answer = connection.call(call, limit).await;
        self.judge(&connection, answer)
    }

    /// Sends a command that changes no lock.
    pub(super) async fn ask(&self, command: redis::Cmd, limit: Duration) -> Result<Value, Failure> {
        Ok(self.call(&command.into(), limit).await?.0)
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
            return Err(Failure::Lost(error::reset(why)));
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
}
