//! Who of a client waits, for locks or for news of leaders, and what wakes them.

use std::sync::{Arc, Mutex, MutexGuard};

use lock_core::{LockName, keep::poison::lock};
use tokio::sync::Notify;
use uuid::Uuid;

use super::book::Book;
use crate::election::observers::Observers;

/// What others of this process reach of a client.
#[derive(Debug)]
pub(crate) struct Waiters {
    /// The client's.
    pub(super) id: Uuid,
    book: Mutex<Book>,
    pub(crate) observers: Observers,
    /// Rings when a look is due earlier than before, or the session ends.
    pub(crate) look_due: Arc<Notify>,
}

impl Waiters {
    /// Nobody waits yet.
    pub(super) fn new(id: Uuid) -> Arc<Self> {
        Arc::new(Self {
            id,
            book: Mutex::default(),
            observers: Observers::default(),
            look_due: Arc::default(),
        })
    }

    /// What is held and waited for. Never held across an await.
    pub(crate) fn book(&self) -> MutexGuard<'_, Book> {
        lock(&self.book)
    }

    /// Something has changed in a queue: whoever of this client waits in it looks now.
    pub(crate) fn ring(&self, name: &LockName) {
        if self.book().ring(name) {
            self.look_due.notify_one();
        }
        self.observers.ring(name);
    }

    /// Something has changed in a queue where others come first: only who is about to wait looks.
    pub(super) fn heard(&self, name: &LockName) {
        self.book().rings += 1;
        self.observers.ring(name);
    }

    /// Everything may have changed.
    #[cfg(feature = "postgres")]
    pub(crate) fn ring_all(&self) {
        self.book().ring_all();
        self.look_due.notify_one();
        self.observers.ring_all();
    }
}
