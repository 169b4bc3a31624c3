//! The signals that ask a program to end.

use std::{
    sync::{
        Arc,
        atomic::{AtomicBool, Ordering},
    },
    time::Duration,
};

use super::Locks;
use crate::{Result, api::signal::asks_to_end, driver::trace};

// Here, too, so that the facade's page says it: rustdoc sees no module of another crate.
#[cfg(feature = "signal")]
impl Locks {
    /// Does the work, and ends in order when the program is asked to end, by SIGINT or SIGTERM
    /// (elsewhere than on Unix: by ctrl-c). No thread can be stopped, so the work is told: `true`
    /// in its argument. From the signal on, new acquires and waits fail with
    /// [`Error::Closed`](crate::Error::Closed), and what is held stays held and renewed until the
    /// work has returned, or for `limit` at most.
    /// Then everything is given back: guards that are left are lost, and
    /// [`is_valid`](crate::Held::is_valid) is false. Without a signal it closes as well when
    /// the work has returned. It returns the work's result when everything is given back; a failed
    /// close is traced, and held locks are free after their TTL.
    ///
    /// From the call on, these signals do not end the program by themselves any more. On a
    /// current-thread runtime of [`open_in`](Self::open_in) a signal is noticed at the next call.
    ///
    /// ```no_run
    /// # fn example(locks: lock_core::blocking::Locks, job: fn(i64)) -> lock_core::Result<()> {
    /// use std::{sync::atomic::Ordering, time::Duration};
    ///
    /// let lock = locks.lock("jobs")?;
    /// locks.drain_on_signal(Duration::from_secs(20), |asked| {
    ///     while !asked.load(Ordering::Relaxed) {
    ///         match lock.acquire() {
    ///             Ok(guard) => job(guard.token().as_i64()),
    ///             Err(error) if error.is_closed() => break,
    ///             Err(error) => return Err(error),
    ///         }
    ///     }
    ///     Ok(())
    /// })?
    /// # }
    /// ```
    ///
    /// # Errors
    ///
    /// [`Error::Unsupported`](crate::Error::Unsupported) inside an async runtime; the work is not
    /// done then.
    pub fn drain_on_signal<T>(
        &self,
        limit: Duration,
        work: impl FnOnce(Arc<AtomicBool>) -> T,
    ) -> Result<T> {
        let asked = Arc::new(AtomicBool::new(false));
        let (locks, flag) = (self.0.locks.clone(), asked.clone());
        let drain = async {
            let signal = asks_to_end();
            let drain = async move {
                signal.await;
                flag.store(true, Ordering::Relaxed);
                // A failed close is the same for the one below.
                let _ = locks.drain(limit).await;
            };
            Ok(tokio::spawn(drain))
        };
        let drain = self.0.wait("drain", drain)?;
        let done = work(asked);
        // Now nothing is left to wait for.
        drain.abort();
        if let Err(error) = self.close() {
            trace::close_failed(self.guarantees().store, &error);
        }
        Ok(done)
    }
}
