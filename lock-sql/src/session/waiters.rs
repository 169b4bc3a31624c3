//! A client's waiting attempts and observers, and what wakes them: also the other clients of this
//! process that use the same database.

use std::sync::{Arc, LazyLock, Mutex, MutexGuard, Weak};

use lock_core::{LockName, keep::poison::lock};
use tokio::sync::Notify;
use uuid::Uuid;

use super::book::Book;
use crate::{
    election::observers::Observers,
    wire::process::{Shared, share},
};

/// The part of a client that other clients of this process reach.
#[derive(Debug, Default)]
pub(crate) struct Waiters {
    /// The client's id.
    pub(super) id: Uuid,
    book: Mutex<Book>,
    pub(crate) observers: Observers,
    /// Rings when a look is due earlier than before, or the session ends.
    pub(crate) look_bell: Arc<Notify>,
}

impl Waiters {
    /// A client without attempts and observers.
    pub(super) fn new(id: Uuid) -> Arc<Self> {
        Arc::new(Self { id, ..Self::default() })
    }

    /// The client's attempts. The guard is never held across an await.
    pub(crate) fn book(&self) -> MutexGuard<'_, Book> {
        lock(&self.book)
    }

    /// Makes the client's attempts and observers look now: a queue has changed.
    pub(crate) fn ring(&self, name: &LockName) {
        if self.book().ring(name) {
            self.look_bell.notify_one();
        }
        self.observers.ring(name);
    }

    /// Notes a change in a queue where another client comes first: only attempts that are about to
    /// wait look.
    pub(super) fn heard(&self, name: &LockName) {
        self.book().rings += 1;
        self.observers.ring(name);
    }

    /// Makes all attempts and observers look: anything may have changed.
    #[cfg(feature = "postgres")]
    pub(crate) fn ring_all(&self) {
        self.book().ring_all();
        self.look_bell.notify_one();
        self.observers.ring_all();
    }
}

/// All clients of one database.
#[derive(Debug, Default)]
pub(super) struct Neighbours(Mutex<Vec<Weak<Waiters>>>);

impl Neighbours {
    /// The clients of the database with this name.
    pub(super) fn of(database: &str) -> Arc<Self> {
        static DATABASES: LazyLock<Shared<String, Neighbours>> = LazyLock::new(Mutex::default);
        share(&DATABASES, database.to_owned(), Self::default)
    }

    pub(super) fn join(&self, client: &Arc<Waiters>) {
        let mut clients = lock(&self.0);
        clients.retain(|other| other.strong_count() > 0);
        clients.push(Arc::downgrade(client));
    }

    /// Wakes the client that is first in this queue, if it is another one than `by`. That client
    /// wakes the next one if it shares the lock.
    pub(super) fn ring(&self, by: &Waiters, name: &LockName) {
        let clients: Vec<_> = lock(&self.0).iter().filter_map(Weak::upgrade).collect();
        let first = |client: &&Arc<Waiters>| client.book().first_waiting(name).unwrap_or(u64::MAX);
        let first = clients.iter().min_by_key(first).map(|client| client.id);
        for client in clients.iter().filter(|client| client.id != by.id) {
            match Some(client.id) == first {
                true => client.ring(name),
                false => client.heard(name),
            }
        }
    }
}
