//! Work that stops with the leadership, and campaigns that follow each other.

use std::{
    future::Future,
    ops::{ControlFlow, Deref},
    time::Duration,
};

use crate::{
    BoxFuture, Election, Error, Held, Result, api::run::run_while_held, deadline::jitter,
    driver::trace,
};

/// The first pause before the next campaign; each failure doubles it.
const FIRST_PAUSE: Duration = Duration::from_millis(100);
/// The longest pause, unless the TTL is shorter.
const LONGEST_PAUSE: Duration = Duration::from_secs(10);
/// The longest pause after work that has ended by itself.
const LONGEST_AFTER_WORK: Duration = Duration::from_secs(1);

/// A view of a leadership that can also publish a value: [`Election::run`] passes it to the work.
/// Derefs to [`Held`]. Cheap to clone; it does not hold the leadership.
#[derive(Clone, Debug)]
pub struct Leading(Held);

impl Leading {
    /// Publishes a new value, like [`Leadership::proclaim`](crate::Leadership::proclaim).
    ///
    /// # Errors
    ///
    /// Same as [`Leadership::proclaim`](crate::Leadership::proclaim).
    ///
    /// # Cancel safety
    ///
    /// Dropping the future does not stop a request that was sent.
    pub fn proclaim(&self, value: impl AsRef<[u8]>) -> BoxFuture<'_, Result<()>> {
        self.0.proclaim(value.as_ref().into())
    }
}

impl Deref for Leading {
    type Target = Held;

    fn deref(&self) -> &Held {
        &self.0
    }
}

impl Election {
    /// Waits until it leads, publishes `value`, does the work while it leads, and resigns. If the
    /// leadership is lost, the work is dropped at its next await point and never polled again.
    ///
    /// ```no_run
    /// # async fn index(_: i64) {}
    /// # async fn example(locks: lock_core::Locks) -> lock_core::Result<()> {
    /// let election = locks.election("indexer")?;
    /// election.run("10.0.0.7", |leading| async move { index(leading.token().as_i64()).await }).await
    /// # }
    /// ```
    ///
    /// # Errors
    ///
    /// Same as [`campaign`](Self::campaign), and [`Error::Lost`] if the leadership was lost before
    /// the work was done.
    ///
    /// # Cancel safety
    ///
    /// Dropping the future drops the work, then resigns in the background.
    pub fn run<V, T, W, F>(
        &self,
        value: V,
        work: W,
    ) -> impl Future<Output = Result<T>> + use<V, T, W, F>
    where
        V: AsRef<[u8]>,
        W: FnOnce(Leading) -> F,
        F: Future<Output = T>,
    {
        let leadership = self.campaign(value);
        async move { run_while_held(|held| work(Leading(held)), leadership.await?.into_guard()).await }
    }

    /// Like [`run`](Self::run), with work that can fail: one `?` for its errors and the election's.
    ///
    /// # Errors
    ///
    /// The errors of the work and of [`run`](Self::run).
    ///
    /// # Cancel safety
    ///
    /// Same as [`run`](Self::run).
    pub fn run_fallible<V, T, E, W, F>(
        &self,
        value: V,
        work: W,
    ) -> impl Future<Output = Result<T, E>> + use<V, T, E, W, F>
    where
        V: AsRef<[u8]>,
        W: FnOnce(Leading) -> F,
        F: Future<Output = Result<T, E>>,
        E: From<Error>,
    {
        let run = self.run(value, work);
        async move { run.await? }
    }

    /// Campaigns, does the work while it leads, resigns, and campaigns again, until the work says
    /// that it is done.
    ///
    /// The work is called once for each leadership, and ends in one of these ways:
    ///
    /// - `Ok(Break(done))`: it resigns, and this returns `Ok(done)`.
    /// - `Ok(Continue(()))`: it resigns, so that the next candidate can lead, and campaigns again.
    /// - `Err(error)`: it resigns, and this returns the error.
    /// - The leadership is lost: the work is dropped, and it campaigns again. It also campaigns
    ///   again if the store is out of reach, or its place among the candidates is lost.
    ///
    /// Between two campaigns it pauses: 100 ms, and twice as long each time, up to the TTL and at
    /// most 10 s, or 1 s if the work has ended by itself. The pauses start again from 100 ms after
    /// a leadership of one TTL, or of 1 s if the work has ended by itself. So work that gives up at
    /// once, again and again, as when a table refuses its token, uses up one token per second. Each
    /// pause is between half and all of that, at random. A campaign that fails, and a leadership
    /// that is lost, emits the event `campaign_failed` of [`trace`](crate::trace).
    ///
    /// ```no_run
    /// # use lock_core as distlock;
    /// use std::ops::ControlFlow;
    ///
    /// # async fn run_jobs(_: &str, _: i64) -> std::io::Result<()> { Ok(()) }
    /// # async fn example(locks: lock_core::Locks, table: String) -> distlock::Result<()> {
    /// let election = locks.election("scheduler")?;
    /// let done: String = election
    ///     .keep_running("10.0.0.7", move |leading| {
    ///         let table = table.clone(); // for this time that it leads
    ///         async move {
    ///             match run_jobs(&table, leading.token().as_i64()).await {
    ///                 Ok(()) => Ok(ControlFlow::Break("all done".to_owned())),
    ///                 Err(_) => Ok::<_, distlock::Error>(ControlFlow::Continue(())),
    ///             }
    ///         }
    ///     })
    ///     .await?;
    /// # Ok(()) }
    /// ```
    ///
    /// The work is called again and again, so each future has its own clone of what it needs. Or it
    /// borrows from a value that outlives the call, as from the `self` of a method:
    /// `|leading| self.lead(leading)`. An `async |leading| ..` closure works if it captures
    /// nothing.
    ///
    /// [`Locks::drain`](crate::Locks::drain) and [`Locks::close`](crate::Locks::close) end it with
    /// [`Error::Closed`], which is the usual end of a service: check it with [`Error::is_closed`].
    /// A drain does not stop the work, but waits for it; `docs/shutdown.md` in the repository shows
    /// both.
    ///
    /// # Errors
    ///
    /// The work's errors, and the errors of [`campaign`](Self::campaign) that another try cannot
    /// mend; also [`Error::WaitTimeout`], as the limit of [`wait`](Self::wait) is for each
    /// campaign.
    ///
    /// # Cancel safety
    ///
    /// Same as [`run`](Self::run).
    pub fn keep_running<V, T, E, W, F>(
        &self,
        value: V,
        mut work: W,
    ) -> impl Future<Output = Result<T, E>> + use<V, T, E, W, F>
    where
        V: AsRef<[u8]>,
        W: FnMut(Leading) -> F,
        F: Future<Output = Result<ControlFlow<T>, E>>,
        E: From<Error>,
    {
        let election = self.clone();
        async move {
            let clock = election.lock.client.home.clock;
            let mut pause = Pause::new(election.lock.request.ttl);
            loop {
                let led = match election.campaign(&value).await {
                    Ok(leadership) => {
                        let began = clock.now();
                        let guard = leadership.into_guard();
                        let led = run_while_held(|held| work(Leading(held)), guard).await;
                        pause.after(clock.now().since(began), led.is_err());
                        led
                    }
                    Err(error) => Err(error),
                };
                let failed = match led {
                    Ok(Ok(ControlFlow::Break(done))) => return Ok(done),
                    Ok(Ok(ControlFlow::Continue(()))) => None,
                    Ok(Err(error)) => return Err(error),
                    Err(error) if is_passing(&error) => Some(error),
                    Err(error) => return Err(error.into()),
                };
                let next = pause.take(failed.is_some());
                if let Some(error) = failed {
                    trace::campaign_failed(&election.lock.request.name, &error, next);
                }
                let client = &election.lock.client;
                // The next campaign says so if the connection is being drained or closed.
                client.pause(next, client.drain.begun.cancelled()).await;
            }
        }
    }
}

/// Whether another campaign may succeed without a fix.
fn is_passing(error: &Error) -> bool {
    matches!(error, Error::Lost { .. } | Error::Unavailable { .. } | Error::PlaceLost { .. })
}

/// The pauses between campaigns.
struct Pause {
    next: Duration,
    longest: Duration,
    ttl: Duration,
}

impl Pause {
    fn new(ttl: Duration) -> Self {
        let longest = ttl.min(LONGEST_PAUSE);
        Self { next: FIRST_PAUSE.min(longest), longest, ttl }
    }

    /// Starts again from the first pause after a leadership that has lasted.
    fn after(&mut self, led: Duration, lost: bool) {
        let lasting = if lost { self.ttl } else { self.ttl.min(LONGEST_AFTER_WORK) };
        if led >= lasting {
            *self = Self::new(self.ttl);
        }
    }

    fn take(&mut self, failed: bool) -> Duration {
        if !failed {
            self.next = self.next.min(LONGEST_AFTER_WORK);
        }
        let pause = jitter(self.next);
        self.next = (self.next * 2).min(self.longest);
        pause
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn pauses_grow_to_the_ttl_and_begin_anew_after_it() {
        let ttl = Duration::from_secs(1);
        let mut pause = Pause::new(ttl);
        for expected in [100, 200, 400, 800, 1000, 1000] {
            let expected = Duration::from_millis(expected);
            pause.after(ttl / 2, true);
            let taken = pause.take(true);
            assert!(taken <= expected && taken >= expected / 2, "{taken:?}");
        }
        pause.after(ttl, true);
        assert_eq!(pause.next, FIRST_PAUSE);
    }

    #[test]
    fn work_that_ends_at_once_is_done_again_after_a_second_at_most() {
        let mut pause = Pause::new(Duration::from_secs(15));
        for _ in 0..20 {
            pause.after(Duration::from_millis(1), false);
            assert!(pause.take(false) <= LONGEST_AFTER_WORK);
        }
        assert!(pause.take(false) >= LONGEST_AFTER_WORK / 2);
        pause.after(LONGEST_AFTER_WORK, false);
        assert_eq!(pause.next, FIRST_PAUSE);
    }

    #[test]
    fn no_pause_is_as_long_as_a_day() {
        let mut pause = Pause::new(Duration::from_secs(86_400));
        for _ in 0..20 {
            pause.take(true);
        }
        assert_eq!(pause.next, LONGEST_PAUSE);
    }
}
