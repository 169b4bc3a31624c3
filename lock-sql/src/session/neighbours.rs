//! What wakes a client's waiting attempts and observers, also those of the other clients of this
//! process that use the same database.

use std::sync::{Arc, LazyLock, Mutex, Weak};

use lock_core::{
    LockName,
    keep::{
        poison::lock,
        share::{Shared, share},
    },
};

use super::{Neighbours, Session};

/// The clients of the database with this name.
pub(super) fn of(database: &str) -> Arc<Neighbours> {
    static DATABASES: LazyLock<Shared<String, Neighbours>> = LazyLock::new(Mutex::default);
    share(&DATABASES, database.to_owned(), Mutex::default)
}

impl Session {
    /// Has the other clients wake this one, too.
    pub(super) fn join(self: &Arc<Self>) {
        let Some(neighbours) = &self.neighbours else { return };
        let mut clients = lock(neighbours);
        clients.retain(|other| other.strong_count() > 0);
        clients.push(Arc::downgrade(self));
    }

    /// Makes the attempts of this process that wait in a queue look: this session has changed it.
    pub(crate) fn changed(&self, name: &LockName) {
        self.ring(name);
        self.tell_neighbours(name);
    }

    /// Same as [`changed`](Self::changed), but only for the other clients. Where the server pushes,
    /// it tells them itself.
    ///
    /// The client that is first in the queue looks if it is another one. It wakes the next one if
    /// it shares the lock. Of the others, only attempts that are about to wait look.
    pub(crate) fn tell_neighbours(&self, name: &LockName) {
        let Some(neighbours) = &self.neighbours else { return };
        let clients: Vec<_> = lock(neighbours).iter().filter_map(Weak::upgrade).collect();
        let first = |client: &&Arc<Self>| client.book().first_waiting(name).unwrap_or(u64::MAX);
        let first = clients.iter().min_by_key(first).map(|client| client.id);
        for client in clients.iter().filter(|client| client.id != self.id) {
            if Some(client.id) == first {
                client.ring(name);
            } else {
                client.book().rings += 1;
                client.observers.ring(name);
            }
        }
    }

    /// Makes this client's attempts and observers look now: a queue has changed.
    pub(crate) fn ring(&self, name: &LockName) {
        if self.book().ring(name) {
            self.look_bell.notify_one();
        }
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
