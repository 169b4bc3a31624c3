//! The end of a connection, at once or after a drain.

use std::time::Duration;

use crate::{BoxFuture, Locks, Result, machine::finish::Finishing};

impl Locks {
    /// Refuses new acquires from now on, here and in all clones, waits at most `limit` until the
    /// existing guards are gone, then [closes](Self::close). Returns how many guards were still
    /// there: 0 if all work was done. The close takes the locks of the remaining guards.
    ///
    /// An acquire meanwhile, and one that waits in a queue, returns
    /// [`Error::Closed`](crate::Error::Closed) with [`ClosedBy::Drain`](crate::ClosedBy::Drain);
    /// the store gets no new attempts. An
    /// [`Owner`](crate::Owner) may acquire again what it holds. An [adoption](Self::adopt) that has
    /// begun counts as a guard. A guard counts until its release is confirmed, also when it was
    /// dropped; a guard with a lost lock counts until it is dropped. A lock that
    /// [`at_least`](crate::Lock::at_least) keeps after that is given back by the close.
    ///
    /// A limit of zero does not wait.
    ///
    /// ```no_run
    /// # use std::time::Duration;
    /// # async fn terminated() {}
    /// # async fn example(locks: lock_core::Locks) -> lock_core::Result<()> {
    /// terminated().await; // SIGTERM, say
    /// let left = locks.drain(Duration::from_secs(20)).await?;
    /// if left > 0 {
    ///     println!("{left} locks were taken from work that was not done in time");
    /// }
    /// # Ok(()) }
    /// ```
    ///
    /// # Errors
    ///
    /// Same as [`close`](Self::close).
    ///
    /// # Cancel safety
    ///
    /// Dropping the future closes nothing; new acquires stay refused. A close that has begun goes
    /// on.
    ///
    /// # Panics
    ///
    /// If it is polled outside a tokio runtime.
    pub fn drain(&self, limit: Duration) -> BoxFuture<'_, Result<usize>> {
        Box::pin(async move {
            self.client.home.check_process()?;
            let left = self.client.drained(limit).await;
            self.close().await.map(|()| left).map_err(|error| error.of("drain"))
        })
    }

    /// Gives back everything that this connection holds, leaves every queue and ends the session.
    /// Returns when the store has confirmed, after at most 5 s. All clones are closed with it:
    /// guards are lost ([`LossReason::Closed`](crate::LossReason::Closed)), waiters and later calls
    /// return [`Error::Closed`](crate::Error::Closed). Stop the work first: the next holder may be
    /// granted at once. Each lock is released, and its release is traced. Closing again does
    /// nothing: it waits for the first close, and returns its result.
    ///
    /// # Errors
    ///
    /// [`Error::Unavailable`](crate::Error::Unavailable) if the store did not confirm in time,
    /// [`Error::Closed`](crate::Error::Closed) if the runtime that connected has ended; held locks
    /// are then free after their TTL.
    ///
    /// # Cancel safety
    ///
    /// Dropping the future does not stop it.
    pub fn close(&self) -> BoxFuture<'_, Result<()>> {
        Box::pin(async move {
            self.client.home.check_process()?;
            self.client.closed.cancel();
            self.client.reach.unmeter();
            let client = self.client.clone();
            let close = async move { client.close().await };
            Finishing::new(&self.client.home, close).await
        })
    }
}
