//! Re-entrance for those who ask for it.

use std::{
    collections::HashMap,
    fmt,
    sync::{Arc, Mutex, PoisonError, Weak},
};

use tokio::sync::{Mutex as Turn, MutexGuard as TurnGuard};

use crate::{
    Error, Held, Instant, Kind, Lock, LockGuard, LockName, Result, held::Inner, locks::Client,
};

/// Somebody who may acquire again what it holds already: each acquire counts, and the last release
/// gives the lock back.
///
/// By default a second acquire waits like any other, also in the same task. Libraries for threads
/// recognise the thread that holds a lock; in async code a task moves between threads, and many tasks
/// share one, so a thread says nothing about who asks. An owner is that identity, made explicit: give
/// clones of it to whatever belongs together.
///
/// ```no_run
/// use lock_core::Owner;
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
/// An owner that holds the exclusive lock gets it also where it asks for the shared one. Whoever holds
/// the shared one and asks for the exclusive one would wait for itself: that is an error, see
/// [`LockGuard::try_upgrade`].
#[derive(Clone, Default)]
pub struct Owner(Arc<Mutex<Seats>>);

/// By connection and name.
type Seats = HashMap<(usize, LockName), Arc<Seat>>;

/// What an owner has of one name. Whoever acquires takes the turn, so that tasks of one owner do not
/// queue up behind each other in the store.
#[derive(Default)]
struct Seat(Turn<Weak<Inner>>);

impl Owner {
    /// Somebody new.
    pub fn new() -> Self {
        Self::default()
    }

    fn seat(&self, client: &Arc<Client>, name: &LockName) -> Arc<Seat> {
        // Nothing panics while it is held.
        let mut seats = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        let key = (Arc::as_ptr(client).addr(), name.clone());
        if let Some(seat) = seats.get(&key) {
            return seat.clone();
        }
        seats.retain(|_, seat| Arc::strong_count(seat) > 1 || seat.is_taken());
        seats.entry(key).or_default().clone()
    }
}

impl Seat {
    /// Whether something is held, or about to be.
    fn is_taken(&self) -> bool {
        self.0.try_lock().is_ok_and(|held| held.strong_count() > 0)
    }
}

impl Lock {
    /// Waits for the lock as its owner.
    ///
    /// # Errors
    ///
    /// As [`Lock::acquire`].
    pub(crate) async fn acquire_as(mut self, owner: Owner) -> Result<LockGuard> {
        let seat = owner.seat(&self.client, &self.request.name);
        let clock = self.client.clock;
        let until = self.wait.map_or(Instant::NEVER, |limit| clock.now() + limit);
        let mut turn = tokio::select! {
            biased;
            turn = seat.0.lock() => turn,
            () = clock.sleep_until(until) => return Err(self.other_task(clock.now().since(until))),
        };
        if let Some(guard) = self.again(&turn)? {
            return Ok(guard);
        }
        if until != Instant::NEVER {
            self.wait = Some(until.since(clock.now()));
        }
        let guard = self.wait_alone().await?;
        *turn = Arc::downgrade(&guard.held().0);
        Ok(guard)
    }

    /// Takes the lock if it is free or its owner's.
    ///
    /// # Errors
    ///
    /// As [`Lock::try_acquire`].
    pub(crate) async fn try_acquire_as(self, owner: Owner) -> Result<Option<LockGuard>> {
        let seat = owner.seat(&self.client, &self.request.name);
        // Another task of the owner is about to get it.
        let Ok(mut turn) = seat.0.try_lock() else { return Ok(None) };
        if let Some(guard) = self.again(&turn)? {
            return Ok(Some(guard));
        }
        let guard = self.try_alone().await?;
        if let Some(guard) = &guard {
            *turn = Arc::downgrade(&guard.held().0);
        }
        Ok(guard)
    }

    /// What the owner holds already, counted once more.
    fn again(&self, turn: &TurnGuard<'_, Weak<Inner>>) -> Result<Option<LockGuard>> {
        let Some(inner) = turn.upgrade().filter(|inner| inner.check().is_ok()) else {
            return Ok(None);
        };
        match (inner.kind(), self.request.kind) {
            (Kind::Shared, Kind::Exclusive) => Err(Error::Unsupported {
                store: self.client.driver.guarantees().store,
                what: format!(
                    "wait for {} until its own shared holder releases it; use try_upgrade",
                    inner.name
                ),
            }),
            _ => Ok(inner.enter().then(|| LockGuard::counted(Held(inner.clone())))),
        }
    }

    fn other_task(&self, late: std::time::Duration) -> Error {
        let waited = self.wait.unwrap_or_default() + late;
        let name = self.request.name.clone();
        Error::WaitTimeout { name, waited, holder: None, position: None }
    }
}

impl fmt::Debug for Owner {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Owner").finish_non_exhaustive()
    }
}
