//! Permits.

use std::{future::Future, sync::Arc};

use crate::{
    Error, Held, Kind, Lock, LockGuard, LockName, Result,
    api::{client::Client, options::options, run::run_while_held},
    keep::errors::invalid,
};

/// A semaphore with its options: a limited number of permits under one name, first come, first
/// served. Cheap to clone; may be acquired many times.
///
/// A waiter for many permits is not overtaken by waiters for few. The permits of a holder that
/// crashed come back after its TTL.
///
/// ```no_run
/// # async fn example(locks: lock_core::Locks) -> lock_core::Result<()> {
/// let uploads = locks.semaphore("uploads", 3)?;
/// let permit = uploads.acquire().await?;
/// permit.release().await
/// # }
/// ```
///
/// # Cancel safety
///
/// Same as the calls of [`Lock`] with these names.
#[derive(Clone, Debug)]
#[must_use = "a semaphore does nothing until it is acquired"]
pub struct Semaphore {
    pub(crate) lock: Lock,
    permits: u32,
}

impl Semaphore {
    pub(crate) fn new(client: Arc<Client>, name: LockName, permits: u32) -> Result<Self> {
        let lock = Lock::new(client, name, Kind::Permit { weight: 1, limit: permits })?;
        if permits == 0 {
            return Err(invalid("permits", 0, "at least 1"));
        }
        Ok(Self { lock, permits })
    }

    options!(|self| self.lock);

    /// Waits for one permit.
    ///
    /// # Errors
    ///
    /// Same as [`Lock::acquire`]. While others use the name with another number of permits, it waits
    /// until they are gone.
    pub fn acquire(&self) -> impl Future<Output = Result<LockGuard>> + Send + use<> {
        self.acquire_many(1)
    }

    /// Waits for `n` permits at once, which one guard holds; `n` from 1 to the number of permits.
    ///
    /// # Errors
    ///
    /// Same as [`acquire`](Self::acquire), and [`Error::InvalidOption`] for a number out of range.
    pub fn acquire_many(&self, n: u32) -> impl Future<Output = Result<LockGuard>> + Send + use<> {
        let lock = self.many(n);
        async move { lock?.acquire().await }
    }

    /// Takes one permit if there is one and no client waits; `None` otherwise.
    ///
    /// # Errors
    ///
    /// Same as [`Lock::try_acquire`], and [`Error::InvalidOption`] if others use the name with
    /// another number of permits.
    pub fn try_acquire(&self) -> impl Future<Output = Result<Option<LockGuard>>> + Send + use<> {
        self.try_acquire_many(1)
    }

    /// Takes `n` permits at once if there are so many and no client waits; `None` otherwise.
    ///
    /// # Errors
    ///
    /// Same as [`try_acquire`](Self::try_acquire) and [`acquire_many`](Self::acquire_many).
    pub fn try_acquire_many(
        &self,
        n: u32,
    ) -> impl Future<Output = Result<Option<LockGuard>>> + Send + use<> {
        let lock = self.many(n);
        async move { lock?.try_acquire().await }
    }

    /// Waits for one permit, does the work while it is held, and gives it back, like [`Lock::run`].
    ///
    /// # Errors
    ///
    /// Same as [`Lock::run`] and [`acquire`](Self::acquire).
    pub fn run<T, W, F>(&self, work: W) -> impl Future<Output = Result<T>> + use<T, W, F>
    where
        W: FnOnce(Held) -> F,
        F: Future<Output = T>,
    {
        self.run_many(1, work)
    }

    /// Like [`run`](Self::run), with `n` permits at once.
    ///
    /// # Errors
    ///
    /// Same as [`run`](Self::run) and [`acquire_many`](Self::acquire_many).
    pub fn run_many<T, W, F>(
        &self,
        n: u32,
        work: W,
    ) -> impl Future<Output = Result<T>> + use<T, W, F>
    where
        W: FnOnce(Held) -> F,
        F: Future<Output = T>,
    {
        let guard = self.acquire_many(n);
        async move { run_while_held(work, guard.await?).await }
    }

    /// Like [`run`](Self::run), with work that can fail: one `?` for its errors and the
    /// semaphore's.
    ///
    /// # Errors
    ///
    /// The errors of the work and of [`run`](Self::run).
    pub fn run_fallible<T, E, W, F>(
        &self,
        work: W,
    ) -> impl Future<Output = Result<T, E>> + use<T, E, W, F>
    where
        W: FnOnce(Held) -> F,
        F: Future<Output = Result<T, E>>,
        E: From<Error>,
    {
        let run = self.run(work);
        async move { run.await? }
    }

    fn many(&self, n: u32) -> Result<Lock> {
        if n == 0 || n > self.permits {
            return Err(invalid("permits to acquire", n, format!("1 to {} here", self.permits)));
        }
        let mut lock = self.lock.clone();
        lock.request.kind = Kind::Permit { weight: n, limit: self.permits };
        Ok(lock)
    }
}
