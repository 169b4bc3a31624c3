//! Work that stops with the leadership, and campaigns that follow each other.

use std::{
    future::Future,
    ops::{ControlFlow, Deref},
    time::Duration,
};

use crate::{
    Election, Error, Held, Result,
    api::run::run_while_held,
    deadline::{Clock, jitter},
};

/// The first pause before the next campaign; after a failure each one is twice as long.
const FIRST_PAUSE: Duration = Duration::from_millis(100);
/// The longest pause, where the TTL is not shorter.
const LONGEST_PAUSE: Duration = Duration::from_secs(10);

/// A look at a leadership, which can also speak to everybody: what the work of [`Election::run`] gets.
/// Derefs to [`Held`]. Cheap to clone; holding on to it does not hold the leadership.
#[derive(Clone, Debug)]
pub struct Leading(Held);

impl Leading {
    /// Says a new value to everybody, as [`Leadership::proclaim`](crate::Leadership::proclaim).
    ///
    /// # Errors
    ///
    /// Those.
    ///
    /// # Cancel safety
    ///
    /// Dropping the future does not stop a request that was sent.
    pub async fn proclaim(&self, value: impl AsRef<[u8]>) -> Result<()> {
        let published = self.0.publish(value.as_ref().into()).await;
        published.map_err(|error| self.0.0.client.told("proclaim", error))
    }
}

impl Deref for Leading {
    type Target = Held;

    fn deref(&self) -> &Held {
        &self.0
    }
}

impl Election {
    /// Waits until it leads, says `value` to everybody, does the work while it leads, and resigns. If the
    /// leadership is lost, the work is dropped at its next await point and never polled again.
    ///
    /// ```no_run
    /// # async fn index(_: u64) {}
    /// # async fn example(locks: lock_core::Locks) -> lock_core::Result<()> {
    /// let election = locks.election("indexer")?;
    /// election.run("10.0.0.7", |leading| async move { index(leading.token().value()).await }).await
    /// # }
    /// ```
    ///
    /// # Errors
    ///
    /// As [`campaign`](Self::campaign), and [`Error::Lost`] if the leadership was lost before the work was
    /// done.
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
        async move { run_while_held(leadership.await?.into_guard(), |held| work(Leading(held))).await }
    }

    /// As [`run`](Self::run) with work that can fail: one `?` for its errors and the election's.
    ///
    /// # Errors
    ///
    /// The work's, and those of [`run`](Self::run).
    ///
    /// # Cancel safety
    ///
    /// As [`run`](Self::run).
    pub fn try_run<V, T, E, W, F>(
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

    /// Campaigns, does the work while it leads, resigns, and campaigns again, until the work says that it
    /// is done.
    ///
    /// The work is called once for each time that it leads, and ends in one of these ways:
    ///
    /// - `Ok(Break(done))`: it resigns, and this returns `Ok(done)`.
    /// - `Ok(Continue(()))`: it resigns, so that the next candidate has a try, and campaigns again.
    /// - `Err(error)`: it resigns, and this returns the error.
    /// - The leadership is lost: the work is dropped, and it campaigns again. So it does when the store is
    ///   out of reach, or its place among the candidates is lost.
    ///
    /// Between two campaigns it pauses: 100 ms, and after failures twice as long each time, up to the
    /// TTL and at most 10 s; from 100 ms again when the work has ended by itself, or it has led for a
    /// TTL. Each pause is between half and all of that, at random.
    ///
    /// ```no_run
    /// use std::ops::ControlFlow;
    ///
    /// # async fn run_jobs(_: u64) -> std::io::Result<()> { Ok(()) }
    /// # async fn example(locks: lock_core::Locks) -> Result<(), Box<dyn std::error::Error>> {
    /// let election = locks.election("scheduler")?;
    /// let done: String = election
    ///     .keep_running("10.0.0.7", async |leading: lock_core::Leading| {
    ///         match run_jobs(leading.token().value()).await {
    ///             Ok(()) => Ok(ControlFlow::Break("all done".to_owned())),
    ///             Err(_) => Ok::<_, lock_core::Error>(ControlFlow::Continue(())),
    ///         }
    ///     })
    ///     .await?;
    /// # Ok(()) }
    /// ```
    ///
    /// # Errors
    ///
    /// The work's, and those of [`campaign`](Self::campaign) that no patience helps against; also
    /// [`Error::WaitTimeout`], as the limit of [`wait`](Self::wait) is for each campaign.
    ///
    /// # Cancel safety
    ///
    /// As [`run`](Self::run).
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
            let clock = election.lock.clock();
            let mut pause = Pause::new(election.lock.request.ttl);
            loop {
                let led = match election.campaign(&value).await {
                    Ok(leadership) => {
                        let began = clock.now();
                        let guard = leadership.into_guard();
                        let led = run_while_held(guard, |held| work(Leading(held))).await;
                        pause.after(clock.now().since(began));
                        led
                    }
                    Err(error) => Err(error),
                };
                match led {
                    Ok(Ok(ControlFlow::Break(done))) => return Ok(done),
                    Ok(Ok(ControlFlow::Continue(()))) => pause.begin_anew(),
                    Ok(Err(error)) => return Err(error),
                    Err(error) if is_passing(&error) => {}
                    Err(error) => return Err(error.into()),
                }
                pause.wait(clock).await;
            }
        }
    }
}

/// Whether another campaign may end otherwise, without anybody's doing.
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

    fn begin_anew(&mut self) {
        *self = Self::new(self.ttl);
    }

    /// Begins anew after a leadership that has lasted.
    fn after(&mut self, led: Duration) {
        if led >= self.ttl {
            self.begin_anew();
        }
    }

    async fn wait(&mut self, clock: Clock) {
        clock.sleep_until(clock.now() + jitter(self.next)).await;
        self.next = (self.next * 2).min(self.longest);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[tokio::test(start_paused = true)]
    async fn pauses_grow_to_the_ttl_and_begin_anew_after_it() {
        let ttl = Duration::from_secs(1);
        let mut pause = Pause::new(ttl);
        for expected in [100, 200, 400, 800, 1000, 1000] {
            assert_eq!(pause.next, Duration::from_millis(expected));
            pause.after(ttl / 2);
            pause.wait(Clock::Tokio).await;
        }
        pause.after(ttl);
        assert_eq!(pause.next, FIRST_PAUSE);
    }

    #[tokio::test(start_paused = true)]
    async fn no_pause_is_as_long_as_a_day() {
        let mut pause = Pause::new(Duration::from_secs(86_400));
        for _ in 0..20 {
            pause.wait(Clock::Tokio).await;
        }
        assert_eq!(pause.next, LONGEST_PAUSE);
        pause.begin_anew();
        assert_eq!(pause.next, FIRST_PAUSE);
    }
}
