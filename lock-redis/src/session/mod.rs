//! One client: the attempts that hold or wait, and the nodes to which their requests go.

pub(crate) mod attempt;
mod book;
mod deployment;
mod description;
mod janitor;
mod moving;
pub(crate) mod node;
mod pushes;
mod reconnect;
mod redirect;
pub(crate) mod renewal;
pub(crate) mod retry;
mod routes;
mod sentinel;
pub(crate) mod slots;
mod start;
mod takeover;
mod to_renew;

use std::{
    fmt,
    sync::{Arc, Mutex, MutexGuard},
};

use lock_core::{Reach, keep::poison::lock};
use tokio::sync::{Notify, Semaphore};
use uuid::Uuid;

use self::book::Book;
pub(crate) use self::routes::Routes;
use crate::{
    config::{Mode, RedisConfig},
    election::observers::Observers,
    layout::ticket::Ticket,
};

/// One client of a deployment: one connection at a time to each node, one renewal for all attempts
/// of a node.
pub(crate) struct Session {
    /// 16 hex digits that start every ticket of this client.
    pub(crate) id: String,
    pub(crate) config: RedisConfig,
    pub(crate) routes: Routes,
    pub(crate) reach: Reach,
    book: Mutex<Book>,
    /// Turns of requests that are not urgent.
    pub(crate) turns: Semaphore,
    pub(crate) observers: Observers,
    /// Notified when something in the book is due earlier than before, or the session ends.
    pub(crate) alarm: Arc<Notify>,
}

impl Session {
    /// Returns the ticket of an attempt of this client.
    pub(crate) fn ticket(&self, attempt: Uuid) -> Ticket {
        match self.config.mode {
            Mode::Queue => Ticket::queued(&self.id, attempt),
            Mode::Simple => Ticket::simple(attempt),
        }
    }

    /// Locks the book. Never held across an await.
    pub(crate) fn book(&self) -> MutexGuard<'_, Book> {
        lock(&self.book)
    }
}

impl fmt::Debug for Session {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let mut shown = f.debug_struct("Session");
        shown.field("id", &self.id).field("config", &self.config).finish_non_exhaustive()
    }
}
