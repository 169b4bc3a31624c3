//! Work that is done once per period.

use std::{future::Future, sync::Arc, time::Duration};

use tokio::time::timeout;

use crate::{
    BoxFuture, Effect, Error, Held, Kind, Lock, LockGuard, LockName, Mark, Result,
    api::{
        client::{Client, Hold},
        run::done_while_held,
    },
    driver::request::this_host,
    keep::{backoff::Backoff, limits::PERIODS},
    machine::finish::Finishing,
};

/// The pauses until a mark without an answer is sent again.
const AGAIN: Backoff = Backoff::new(Duration::from_millis(50), Duration::from_secs(1));
/// The longest look for a mark before the wait.
const LOOK: Duration = Duration::from_secs(1);

/// A lock whose work is done once per period, by [`Lock::once_per`].
#[derive(Clone, Debug)]
#[must_use = "it does nothing until it is run"]
pub struct OncePer {
    lock: Lock,
    period: Duration,
}

/// What came of work that is done [once per period](Lock::once_per).
#[derive(Debug)]
#[must_use = "the work may have been done without a mark"]
pub enum Once<T> {
    /// It was done here, and is marked as done, unless the period was over before.
    Done(T),
    /// It was done here, and the store has not confirmed the mark, for the reason of this error:
    /// unless it was written all the same, the next run does the work again.
    Unmarked(T, Error),
    /// It counts as done already: this call did nothing.
    AlreadyDone(Mark),
}

impl Lock {
    /// Does work once per period, whichever processes ask for it: what a job needs that cron starts
    /// on several hosts. A run that succeeds leaves a [mark](Mark) in the store. Until the period
    /// is over, which counts from the grant of that run, others see the mark and do nothing.
    ///
    /// The mark is written in the one step in which the store finds the lock still held. So there
    /// is no mark of a run that failed, or lost its lock. The lock is released when the store has
    /// confirmed the mark. If it does not, the lock expires.
    ///
    /// **At least once.** A crash between the end of the work and its mark has the work done again,
    /// and so has a loss of the mark: see [`Guarantees::marks`](crate::Guarantees::marks).
    ///
    /// ```no_run
    /// # use lock_core as distlock;
    /// # async fn back_up(_: i64) -> std::io::Result<()> { Ok(()) }
    /// # async fn example(locks: lock_core::Locks) -> Result<(), Box<dyn std::error::Error>> {
    /// use std::time::Duration;
    ///
    /// use distlock::Once;
    ///
    /// let nightly = locks.lock("nightly")?.once_per(Duration::from_secs(20 * 3600));
    /// let run = nightly.run(|held| async move {
    ///     back_up(held.token().as_i64()).await?;
    ///     Ok::<_, Box<dyn std::error::Error>>(())
    /// });
    /// match run.await? {
    ///     Once::Done(()) => println!("done"),
    ///     Once::Unmarked((), error) => println!("done, and may be done again: {error}"),
    ///     Once::AlreadyDone(mark) => println!("{mark}"),
    /// }
    /// # Ok(()) }
    /// ```
    ///
    /// Exclusive locks only.
    pub fn once_per(&self, period: Duration) -> OncePer {
        OncePer { lock: self.clone(), period }
    }
}

impl OncePer {
    /// Looks for a mark, for at most 1 s; without one, waits for the lock as [`Lock::acquire`]
    /// does, looks again, and does the work while the lock is held. If the work returns `Ok`, it is
    /// marked as done, and the lock released. If the lock is lost, the work is dropped at its next
    /// await point.
    ///
    /// # Errors
    ///
    /// The work's own; the same as [`Lock::acquire`]; [`Error::Lost`] if the lock was lost before
    /// the work was done; [`Error::Unsupported`] if the store keeps no marks or the lock is shared;
    /// [`Error::InvalidOption`] for a period below 1 ms or above 3660 days; and the store's
    /// errors if it does not say whether there is a mark. The work has not begun, or has failed.
    ///
    /// # Cancel safety
    ///
    /// Dropping the future drops the work, then releases the lock in the background, without a
    /// mark. When the work is done already, mark and release go on in the background.
    pub fn run<T, E, W, F>(
        &self,
        work: W,
    ) -> impl Future<Output = Result<Once<T>, E>> + use<T, E, W, F>
    where
        W: FnOnce(Held) -> F,
        F: Future<Output = Result<T, E>>,
        E: From<Error>,
    {
        let (turn, period) = (self.turn(), self.period);
        async move {
            let guard = match turn.await? {
                Ok(guard) => guard,
                Err(mark) => return Ok(Once::AlreadyDone(mark)),
            };
            let done = match done_while_held(work, &guard).await? {
                Ok(done) => done,
                Err(failed) => {
                    // A failure is traced.
                    let _ = guard.release().await;
                    return Err(failed);
                }
            };
            Ok(match guard.mark_and_release(period).await {
                Ok(()) => Once::Done(done),
                Err(error) => Once::Unmarked(done, error),
            })
        }
    }

    /// The grant of the run whose turn it is, or the mark of the one that has done the work.
    fn turn(&self) -> BoxFuture<'static, Result<Result<LockGuard, Mark>>> {
        let Self { lock, period } = self.clone();
        Box::pin(async move {
            let (client, name) = (&lock.client, &lock.request.name);
            client.check_period(lock.request.kind, period)?;
            lock.check()?;
            // A mark is there to stay, so it spares the wait. If the store cannot tell, the look
            // after the grant counts.
            if let Ok(Ok(Some(mark))) = timeout(LOOK, client.mark(name.clone())).await {
                return Ok(Err(mark));
            }
            // The minimum hold time is for a run that works: others would only delay the next one.
            let guard = lock.clone().at_least(Duration::ZERO).acquire().await?;
            // That there is no mark counts only now: earlier, a holder could still write one.
            let Some(mark) = guard.mark().await? else {
                lock.keep_at_least(&guard);
                return Ok(Ok(guard));
            };
            // A failure is traced.
            let _ = guard.release().await;
            Ok(Err(mark))
        })
    }
}

impl LockGuard {
    /// Returns the lock's mark, as [`Locks::mark`](crate::Locks::mark) does. Here it counts that
    /// there is none, since no other client can write one while the lock is held. It asks again
    /// while the store does not answer, until the lock is lost.
    ///
    /// # Errors
    ///
    /// Same as [`Locks::mark`](crate::Locks::mark), and [`Error::Lost`].
    ///
    /// # Cancel safety
    ///
    /// Dropping the future loses the answer and nothing else.
    pub fn mark(&self) -> BoxFuture<'_, Result<Option<Mark>>> {
        Box::pin(async move {
            let (hold, mut pause) = (self.held().0, AGAIN);
            loop {
                hold.check_all()?;
                match hold.client.mark(hold.name.clone()).await {
                    Err(Error::Unavailable { .. }) => pause.wait().await,
                    answer => return answer,
                }
            }
        })
    }

    /// Marks the work of an exclusive lock as done for this period, which counts from the grant:
    /// for a program that has looked for a [mark](Self::mark), and does not use
    /// [`Lock::once_per`]. The mark is sent again until the store has answered, or the lock is
    /// lost. Release the lock afterwards.
    ///
    /// A period that is over already leaves no mark. For a lock that was
    /// [adopted](crate::Locks::adopt), it counts from the adoption.
    ///
    /// # Errors
    ///
    /// Nothing is marked then, unless an earlier request without an answer has done it while the
    /// lock was still held.
    ///
    /// - [`Error::Lost`] if the lock was lost before the store confirmed.
    /// - [`Error::Unsupported`] if the store keeps no marks, or the lock is not exclusive;
    ///   [`Error::InvalidOption`] for a period below 1 ms or above 3660 days.
    /// - [`Error::Denied`], [`Error::Rejected`].
    ///
    /// # Cancel safety
    ///
    /// Dropping the future does not stop it, while the lock is held.
    pub fn mark_done(&self, period: Duration) -> BoxFuture<'_, Result<()>> {
        let hold = self.held().0;
        Box::pin(async move {
            let marked = Finishing::new(&hold.client.home, hold.clone().mark(period)).await;
            hold.client.after_loss(&marked).await;
            marked.map_err(|error| hold.failed("mark as done", error))
        })
    }

    /// Goes on if it is dropped: the lock must not be released while the mark is on its way.
    fn mark_and_release(self, period: Duration) -> Finishing<()> {
        let home = self.held().0.client.home.clone();
        Finishing::new(&home, async move {
            let marked = self.mark_done(period).await;
            // A failure is traced. A lost lock is not released.
            let _ = self.release().await;
            marked
        })
    }
}

impl Hold {
    /// Sends the mark until the store has answered, or the lock is lost.
    async fn mark(self: Arc<Self>, period: Duration) -> Result<()> {
        self.client.check_period(self.held_as.kind(), period)?;
        let mut pause = AGAIN;
        loop {
            self.check_all()?;
            let left = period.saturating_sub(self.client.home.now().since(self.granted));
            if left < *PERIODS.start() {
                return Ok(());
            }
            match self.lease.mark(this_host(), left).await {
                Err(error) if is_in_doubt(&error) => pause.wait().await,
                answer => return answer,
            }
        }
    }
}

fn is_in_doubt(error: &Error) -> bool {
    matches!(error, Error::Unavailable { .. }) || error.effect() == Effect::Unknown
}

impl Client {
    /// Refuses a period that no mark can have.
    fn check_period(&self, kind: Kind, period: Duration) -> Result<()> {
        self.driver.guarantees().check_period(period)?;
        match kind {
            Kind::Exclusive => Ok(()),
            _ => Err(self.unsupported("mark as done what was done under a lock for several")),
        }
    }

    /// The mark of a name.
    pub(super) async fn mark(&self, name: LockName) -> Result<Option<Mark>> {
        let (driver, asked) = (self.driver.clone(), name.clone());
        driver.guarantees().check_marks()?;
        let mark = self.home.clone().ask(async move { driver.mark(&asked).await }).await;
        mark.map_err(|error| self.failed("mark", error).about(&name))
    }
}
