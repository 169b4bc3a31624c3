//! A client's waiting attempts and observers, and what wakes them.

use std::sync::{Arc, Mutex, MutexGuard};

use lock_core::{LockName, keep::poison::lock};
use tokio::sync::Notify;
use uuid::Uuid;

use super::book::Book;
use crate::election::observers::Observers;

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
