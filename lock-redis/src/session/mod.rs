//! One client: its connection, kept alive, and what it holds and waits for.

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
    Reach, Result,
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
    error::{self, STORE},
    layout::ticket::Ticket,
    wire::{
        clock::CLOCK,
        connection::{Connection, Connector, Peer},
        turns::Turns,
    },
};

/// What a client is to the server: one connection at a time, one renewal.
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
    /// Releases that are on their way by themselves.
    alone: Semaphore,
    /// The others.
    departures: Departures<Arc<Attempt>>,
    pub(crate) turns: Turns,
    pub(crate) observers: Observers,
    /// Rings when the book has something due earlier than before, or the session ends.
    due: Arc<Notify>,
}

/// The present connection, or why there is none.
#[derive(Clone, Debug)]
pub(crate) enum Link {
    Up(Connection),
    /// Why, and what the server called the connection before.
    Down(Arc<RedisError>, Option<Peer>),
    Closed,
}

impl Session {
    /// The ticket of an attempt of this client.
    pub(crate) fn ticket(&self, attempt: Uuid) -> Ticket {
        match self.mode {
            Mode::Queue => Ticket::queued(&self.id, attempt),
            Mode::Simple => Ticket::simple(attempt),
        }
    }

    /// What is held and waited for. Never held across an await.
    fn book(&self) -> MutexGuard<'_, Book> {
        lock(&self.book)
    }

    /// Has the attempt renewed, kept alive and told about pushes from now on.
    ///
    /// # Errors
    ///
    /// [`Error::Closed`](lock_core::Error::Closed).
    pub(crate) fn enter(&self, attempt: &Arc<Attempt>) -> Result<()> {
        let earlier = self.book().attempts.enter(attempt, CLOCK.now());
        if earlier.ok_or_else(error::closed)? {
            self.due.notify_one();
        }
        Ok(())
    }

    pub(crate) fn forget(&self, attempt: &Attempt) {
        self.book().attempts.forget(attempt);
    }

    /// Where to see that the connection has changed.
    pub(crate) fn link(&self) -> watch::Receiver<Link> {
        self.link.subscribe()
    }

    /// Gives up a connection, unless that was done already.
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
