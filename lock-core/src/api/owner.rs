//! Re-entrance on request.

use std::{
    collections::HashMap,
    sync::{Arc, Mutex, MutexGuard, Weak},
};

use tokio::sync::Mutex as Turn;

use crate::{
    LockName,
    api::client::{Client, Hold},
    keep::poison::lock,
};

/// An identity that may acquire again what it holds already: each acquire counts, and the last
/// release gives the lock back.
///
/// By default a second acquire waits like any other, also in the same task. Libraries for threads
/// recognise the thread that holds a lock. In async code a task moves between threads, and many
/// tasks share one, so a thread does not identify the caller. An owner makes that identity
/// explicit: give clones of it to the code that belongs together.
///
/// ```no_run
/// # use lock_core as distlock;
/// use distlock::Owner;
///
/// # async fn example(locks: lock_core::Locks) -> lock_core::Result<()> {
/// let owner = Owner::new();
/// let lock = locks.lock("orders/42")?.owner(&owner);
/// let outer = lock.acquire().await?;
/// let inner = lock.acquire().await?; // at once
/// assert_eq!(outer.token(), inner.token());
/// outer.release().await?; // still held
/// inner.release().await
/// # }
/// ```
///
/// An owner that holds the exclusive lock also gets the shared one. An owner that holds the shared
/// lock and asks for the exclusive one would wait for itself: that is an error, see
/// [`LockGuard::try_upgrade`](crate::LockGuard::try_upgrade).
///
/// An owner's holds belong to one connection: on another connection it waits for itself. Options of
/// an acquire that only counts (its TTL, its maximum hold time) have no effect.
/// [`Held`](crate::Held) describes the grant, also after one of several guards was released. A
/// leader that campaigns again proclaims: see [`Election::owner`](crate::Election::owner).
#[derive(Clone, Debug, Default)]
pub struct Owner(Arc<Mutex<Seats>>);

/// Seats by connection and name.
type Seats = HashMap<(usize, LockName), Arc<Seat>>;

/// An owner's hold of one name.
#[derive(Debug, Default)]
pub(super) struct Seat {
    held: Mutex<Weak<Hold>>,
    /// Locked by the task that asks the store, so that tasks of one owner do not queue up behind
    /// each other.
    pub(super) turn: Turn<()>,
}

impl Owner {
    /// A new identity.
    pub fn new() -> Self {
        Self::default()
    }

    pub(super) fn seat(&self, client: &Arc<Client>, name: &LockName) -> Arc<Seat> {
        let mut seats = lock(&self.0);
        let key = (Arc::as_ptr(client).addr(), name.clone());
        if let Some(seat) = seats.get(&key) {
            return seat.clone();
        }
        // Another call has the seat, or a guard of its grant lives.
        seats.retain(|_, seat| Arc::strong_count(seat) > 1 || seat.held().strong_count() > 0);
        seats.entry(key).or_default().clone()
    }
}

impl Seat {
    pub(super) fn held(&self) -> MutexGuard<'_, Weak<Hold>> {
        lock(&self.held)
    }
}
