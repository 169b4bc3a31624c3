//! The end of a connection, at once or in order.

use std::time::Duration;

use crate::{Locks, Result, machine::finish::Finishing};

#[allow(unused_imports, reason = "for the documentation")]
use crate::Error;

impl Locks {
    /// Ends in order: from now on nothing new is acquired, here or by a clone; the guards that there
    /// are may be used to their end, for at most `limit`; then [closes](Self::close). Answers how many
    /// guards were still there: 0 if all work was done, and otherwise those that the close has taken
    /// their locks from.
    ///
    /// Who acquires meanwhile, or waits in a queue, is told [`Error::Closed`] by
    /// [`ClosedBy::Drain`](crate::ClosedBy::Drain), and the store hears of nobody new. An
    /// [`Owner`](crate::Owner) may acquire again what it holds. An [adoption](Self::adopt) that is under
    /// way counts as a guard. A guard counts until its release is confirmed, also when it was dropped,
    /// and until it is dropped when its lock was lost; what [`at_least`](crate::Lock::at_least) keeps
    /// after that is given back by the close.
    ///
    /// A limit of zero waits for nobody.
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
    /// As [`close`](Self::close).
    ///
    /// # Cancel safety
    ///
    /// Dropping the future closes nothing; newcomers stay refused. A close that has begun goes on.
    ///
    /// # Panics
    ///
    /// If it is polled outside a tokio runtime.
    pub async fn drain(&self, limit: Duration) -> Result<usize> {
        self.client.home.check()?;
        let left = self.client.drained(limit).await;
        self.close().await.map(|()| left).map_err(|error| error.of("drain"))
    }

    /// Gives back everything that this connection holds, leaves every queue and ends the session.
    /// Returns when the store has confirmed, after at most 5 s. All clones are closed with it:
    /// guards say that they are lost ([`LossReason::Closed`](crate::LossReason::Closed)), waiters and
    /// later calls are told [`Error::Closed`]. Stop the work first: the next holder may be granted at
    /// once. It is a release of each lock, and traced as one. Closing again does nothing: it waits
    /// for the first close, and answers what that came to.
    ///
    /// # Errors
    ///
    /// [`Error::Unavailable`] if the store did not confirm in time, [`Error::Closed`] if the runtime
    /// that connected has ended; what was held is then free after its TTL.
    ///
    /// # Cancel safety
    ///
    /// Dropping the future does not stop it.
    pub async fn close(&self) -> Result<()> {
        self.client.closed.cancel();
        let client = self.client.clone();
        let close = async move { client.close().await };
        Finishing::new(&self.client.home, close, || {}).await
    }
}
