//! The signals that ask a program to end.

use std::future::Future;

use crate::{BoxFuture, Locks, Result, driver::trace};

// Here, too, so that the facade's page says it: rustdoc sees no module of another crate.
#[cfg(feature = "signal")]
impl Locks {
    /// Does the work until it is done or the program is asked to end, by SIGINT or SIGTERM
    /// (elsewhere than on Unix: by ctrl-c); then [closes](Self::close). A signal drops the work at
    /// its next await point, before anything is given back; tasks that it spawned must end with it.
    /// Returns the work's result, `None` after a signal.
    ///
    /// From the first poll on, these signals do not end the program by themselves any more.
    ///
    /// ```no_run
    /// # async fn work(_: &lock_core::Locks) -> u32 { 0 }
    /// # async fn example(locks: lock_core::Locks) -> lock_core::Result<()> {
    /// match locks.close_on_signal(work(&locks)).await? {
    ///     Some(done) => println!("done: {done}"),
    ///     None => println!("stopped; everything is given back"),
    /// }
    /// # Ok(()) }
    /// ```
    ///
    /// # Errors
    ///
    /// After a signal, same as [`close`](Self::close). If the work was done, a failed close is
    /// traced, and held locks are free after their TTL.
    ///
    /// # Cancel safety
    ///
    /// Dropping the future drops the work; a close that has begun goes on.
    pub async fn close_on_signal<T>(&self, work: impl Future<Output = T>) -> Result<Option<T>> {
        // The work is dropped after this, whichever of the two comes first.
        let done = tokio::select! {
            done = work => Some(done),
            () = asks_to_end() => None,
        };
        let closed = self.close().await;
        let Some(done) = done else { return closed.map(|()| None) };
        // The work was done all the same.
        if let Err(error) = closed {
            trace::close_failed(self.guarantees().store, &error);
        }
        Ok(Some(done))
    }
}

/// Listens from now on, and waits for the next signal.
#[cfg(unix)]
pub(crate) fn asks_to_end() -> BoxFuture<'static, ()> {
    use tokio::signal::unix::{SignalKind, signal};

    let next = |kind| {
        let signal = signal(kind);
        async move {
            match signal {
                Ok(mut signal) => drop(signal.recv().await),
                // Not available here: the other one is enough.
                Err(_) => std::future::pending().await,
            }
        }
    };
    let (interrupt, terminate) = (next(SignalKind::interrupt()), next(SignalKind::terminate()));
    Box::pin(async move {
        tokio::select! {
            () = interrupt => {}
            () = terminate => {}
        }
    })
}

/// Waits for the next signal.
#[cfg(not(unix))]
pub(crate) fn asks_to_end() -> BoxFuture<'static, ()> {
    Box::pin(async move {
        if tokio::signal::ctrl_c().await.is_err() {
            // Not available here.
            std::future::pending().await
        }
    })
}
