//! One client: its connection, which it restores, and the attempts that hold or wait.

pub(crate) mod attempt;
mod book;
mod deployment;
mod description;
mod janitor;
mod pushes;
mod reconnect;
mod renewal;
mod retry;
mod start;

use std::{
    fmt,
    sync::{Arc, Mutex, MutexGuard, atomic::AtomicU64},
};

use lock_core::{
    Reach,
    keep::{departures::Departures, poison::lock},
    trace,
};
use redis::RedisError;
use tokio::sync::{Notify, Semaphore, watch};
use uuid::Uuid;

use self::{attempt::Attempt, book::Book};
use crate::{
    config::Mode,
    election::observers::Observers,
    error::STORE,
    layout::ticket::Ticket,
    wire::connection::{Connection, Connector, Peer},
};

/// One client of the server: one connection at a time, one renewal for all its attempts.
pub(crate) struct Session {
    /// 16 hex digits that start every ticket of this client.
    pub(crate) id: String,
    pub(crate) mode: Mode,
    pub(crate) database: i64,
    connector: Connector,
    link: watch::Sender<Link>,
    pub(crate) reach: Reach,
    connections: AtomicU64,
    book: Mutex<Book>,
    /// Permits of releases with a request each.
    alone: Semaphore,
    /// The other releases.
    departures: Departures<Arc<Attempt>>,
    /// Permits for requests that are not urgent.
    pub(crate) turns: Semaphore,
    pub(crate) observers: Observers,
    /// Notified when something in the book is due earlier than before, or the session ends.
    pub(crate) due: Arc<Notify>,
}

/// The present connection, or why there is none.
#[derive(Clone, Debug)]
pub(crate) enum Link {
    Up(Connection),
    /// Why, and the server's name for the previous connection.
    Down(Arc<RedisError>, Option<Peer>),
    Closed,
}

impl Session {
    /// Returns the ticket of an attempt of this client.
    pub(crate) fn ticket(&self, attempt: Uuid) -> Ticket {
        match self.mode {
            Mode::Queue => Ticket::queued(&self.id, attempt),
            Mode::Simple => Ticket::simple(attempt),
        }
    }

    /// Locks the book. Never held across an await.
    pub(crate) fn book(&self) -> MutexGuard<'_, Book> {
        lock(&self.book)
    }

    /// Returns a receiver of the connection's changes.
    pub(crate) fn link(&self) -> watch::Receiver<Link> {
        self.link.subscribe()
    }

    /// Gives up a connection, unless it was given up before.
    fn lose(&self, number: u64, error: RedisError) {
        self.link.send_if_modified(|link| match link {
            Link::Up(connection) if connection.number == number => {
                trace::disconnected(STORE, &error);
                self.reach.broke(&error);
                *link = Link::Down(Arc::new(error), connection.peer.take());
                true
            }
            _ => false,
        });
    }
}

impl fmt::Debug for Session {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Session").field("id", &self.id).finish_non_exhaustive()
    }
}
