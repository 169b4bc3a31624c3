//! The ways to get a lock.

use std::future::Future;

use crate::{Error, Held, Lock, LockGuard, Result, api::run::run_while_held};

impl Lock {
    /// Waits for the lock. The future borrows nothing, so it can be spawned.
    ///
    /// # Errors
    ///
    /// - [`Error::InvalidOption`] if the options do not fit the store.
    /// - [`Error::WaitTimeout`] if the limit of [`wait`](Self::wait) passed. It has the holder, how
    ///   long the holder has the lock, and the caller's position, if the store reports them within
    ///   a second. However many waits of a client end at once, the store gets one request at a
    ///   time.
    /// - [`Error::Unavailable`] if the store could not be reached for one TTL, or answered nothing
    ///   until a shorter limit of [`wait`](Self::wait) had passed.
    /// - [`Error::Lost`] if the grant came and ended while the future was not polled: see below.
    /// - [`Error::PlaceLost`] if the caller's place in the queue was revoked, deleted, or not
    ///   renewed in time.
    /// - [`Error::Unsupported`] if its [`owner`](Self::owner) holds the shared lock and asks for
    ///   the exclusive one.
    /// - [`Error::Denied`], [`Error::Misconfigured`], [`Error::Rejected`].
    /// - [`Error::Closed`] by a [close](crate::Locks::close) when that has ended, and by a
    ///   [drain](crate::Locks::drain) when this attempt has left the queue, at most 5 s later. So a
    ///   program that ends with this error leaves nothing behind.
    ///
    /// # Cancel safety
    ///
    /// Dropping the future leaves the queue; the place in it is lost. Pending requests are cleaned
    /// up in the background, also a grant that arrives too late.
    ///
    /// # Not polling
    ///
    /// A future that is kept and not polled (a `select!` with a slow branch) goes on by itself:
    /// after 50 ms it runs in a task of its own. It keeps its place in the queue, and a grant is
    /// renewed from the start. A grant that is not collected within one TTL is given back. The next
    /// poll then returns [`Error::Lost`] with
    /// [`LossReason::NotCollected`](crate::LossReason::NotCollected). The limit of
    /// [`wait`](Self::wait) is checked only when the future is polled.
    ///
    /// # Panics
    ///
    /// If it is polled outside a tokio runtime. It may be polled in another runtime than the one
    /// that connected, while that one lives and runs; see [`Locks`](crate::Locks#runtimes).
    pub fn acquire(&self) -> impl Future<Output = Result<LockGuard>> + Send + use<> {
        let lock = self.clone();
        async move {
            lock.check()?;
            let (client, name) = (lock.client.clone(), lock.request.name.clone());
            let granted = match lock.owner.clone() {
                None => lock.wait_alone().await,
                Some(owner) => Box::pin(lock.acquire_as(owner)).await,
            };
            granted.map_err(|error| client.failed("acquire", error).about(&name))
        }
    }

    /// Takes the lock if it is free and no client waits for it; `None` otherwise. It never waits
    /// for a holder, never overtakes a waiter, and leaves nothing behind.
    ///
    /// `None` does not say who holds it. `lock.wait(Duration::ZERO).acquire()` tries once, too, and
    /// its [`Error::WaitTimeout`] names the holder, if the store reports it within a second.
    ///
    /// # Errors
    ///
    /// Same as [`acquire`](Self::acquire), without [`Error::WaitTimeout`]. An outage is an error
    /// after at most 5 s, never `None`.
    ///
    /// # Cancel safety
    ///
    /// Same as [`acquire`](Self::acquire).
    pub fn try_acquire(&self) -> impl Future<Output = Result<Option<LockGuard>>> + Send + use<> {
        let lock = self.clone();
        async move {
            lock.check()?;
            let (client, name) = (lock.client.clone(), lock.request.name.clone());
            let granted = match lock.owner.clone() {
                None => lock.try_alone().await,
                Some(owner) => lock.try_acquire_as(owner).await,
            };
            granted.map_err(|error| client.failed("try_acquire", error).about(&name))
        }
    }

    /// Waits for the lock, does the work while it is held, and releases it afterwards. If the lock
    /// is lost, the work is dropped at its next await point and never polled again.
    ///
    /// The work's result is returned also if the release fails: the work was done while the lock
    /// was held.
    ///
    /// ```no_run
    /// # async fn write(_: i64) {}
    /// # async fn example(locks: lock_core::Locks) -> lock_core::Result<()> {
    /// locks.lock("report")?.run(|held| async move { write(held.token().as_i64()).await }).await
    /// # }
    /// ```
    ///
    /// # Errors
    ///
    /// Same as [`acquire`](Self::acquire), and [`Error::Lost`] if the lock was lost before the work
    /// was done.
    ///
    /// # Cancel safety
    ///
    /// Dropping the future drops the work, then releases the lock in the background.
    pub fn run<T, W, F>(&self, work: W) -> impl Future<Output = Result<T>> + use<T, W, F>
    where
        W: FnOnce(Held) -> F,
        F: Future<Output = T>,
    {
        let guard = self.acquire();
        async move { run_while_held(work, guard.await?).await }
    }

    /// Like [`run`](Self::run), with work that can fail: one `?` for its errors and the lock's. It
    /// waits for the lock as `run` does. If the result goes through a `?`, the compiler cannot infer
    /// the type of the error, and the work names it:
    ///
    /// ```no_run
    /// # async fn save(_: i64) -> std::io::Result<()> { Ok(()) }
    /// # async fn example(locks: lock_core::Locks) -> Result<(), Box<dyn std::error::Error>> {
    /// let lock = locks.lock("report")?;
    /// lock.run_fallible(|held| async move {
    ///     save(held.token().as_i64()).await?;
    ///     Ok::<_, Box<dyn std::error::Error>>(())
    /// })
    /// .await?;
    /// # Ok(()) }
    /// ```
    ///
    /// # Errors
    ///
    /// The errors of the work and of [`run`](Self::run).
    ///
    /// # Cancel safety
    ///
    /// Same as [`run`](Self::run).
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
}
