//! The owner of work that must neither be dropped half-way nor wait for its caller.

use std::{
    future::Future,
    mem,
    pin::Pin,
    sync::Arc,
    task::{Context, Poll},
    time::Duration,
};

use futures_util::FutureExt;

use super::{
    alarm::Watched,
    moving::{Collect, Moving, STAY},
    runtime::HomeRuntime,
};
use crate::{Attempt, BoxFuture, Result};

/// A future that is polled to its end even if its caller drops it, or does not poll it.
///
/// For the first 50 ms the work runs in the caller's own task: no hand-over between tasks, so an
/// uncontended acquire costs no extra wake-up. Then, or when the caller drops it half-way (a
/// timeout, a `select!`), the work moves to a task of its own and is finished there. So drivers are
/// straight-line code, and every acquire, renew and release is cancellation-safe at every await
/// point by construction. A caller that does not poll for a while (the slow branch of a `select!`)
/// delays neither the renewal of a grant nor the queue.
///
/// The output may have to be [collected in time](Self::collected_within).
///
/// A caller in another runtime than the client's only waits: timers belong to the runtime in which
/// they were first polled, and that one may end before the work does. If the client's runtime ends
/// before, the work is gone with it, and the caller gets [`Error::Closed`](crate::Error::Closed); also a caller that
/// waits by that runtime's handle, which outlives it.
///
/// The work lies on the heap anyway, as it moves. So its type is not part of this one, which is
/// compiled for each output and not for each work.
pub(crate) struct Finishing<T: Send + 'static> {
    progress: Progress<T>,
    /// What is cancelled when the caller leaves.
    attempt: Option<Attempt>,
    home: Arc<HomeRuntime>,
    collect: Option<Collect<Result<T>>>,
}

enum Progress<T: Send + 'static> {
    /// Not polled yet.
    New(BoxFuture<'static, Result<T>>),
    Begun(Arc<Moving<Result<T>>>),
    Over,
}

impl<T: Send + 'static> Finishing<T> {
    /// Owns `work`.
    pub(crate) fn new(
        home: &Arc<HomeRuntime>,
        work: impl Future<Output = Result<T>> + Send + 'static,
    ) -> Self {
        let progress = Progress::New(Box::pin(work));
        Self { progress, attempt: None, home: home.clone(), collect: None }
    }

    /// Cancels `attempt` when its caller leaves, so that the work ends.
    pub(crate) fn cancelling(mut self, attempt: Attempt) -> Self {
        self.attempt = Some(attempt);
        self
    }

    /// Discards the output if the caller has not polled for this time after it came. The caller
    /// then gets the result of `discard`. Only work that has moved can end unnoticed.
    pub(crate) fn collected_within(
        mut self,
        within: Duration,
        discard: fn(Result<T>) -> Result<T>,
    ) -> Self {
        self.collect = Some((within, discard));
        self
    }

    /// Polls the work for the first time; in memory that is often the only time.
    fn begin(
        &mut self,
        mut work: BoxFuture<'static, Result<T>>,
        cx: &mut Context<'_>,
    ) -> Poll<Result<T>> {
        if let Err(closed) = self.home.check() {
            return Poll::Ready(Err(closed));
        }
        let is_here = self.home.is_here();
        if is_here && let Poll::Ready(done) = work.as_mut().poll(cx) {
            return Poll::Ready(done);
        }
        let moving = Moving::here(work, cx.waker(), &self.home, self.collect);
        let now = self.home.clock.now();
        match is_here {
            true => moving.wake_at(now + STAY),
            false => drop(moving.clone().ring(now)),
        }
        // The runtime may have ended before the alarm had the work.
        if let Err(closed) = self.home.check() {
            return Poll::Ready(Err(closed));
        }
        self.progress = Progress::Begun(moving);
        Poll::Pending
    }
}

impl<T: Send + 'static> Future for Finishing<T> {
    type Output = Result<T>;

    fn poll(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<Result<T>> {
        let this = &mut *self;
        // Taken out while it is polled: work that panics must not be polled again.
        match mem::replace(&mut this.progress, Progress::Over) {
            Progress::New(work) => this.begin(work, cx),
            Progress::Begun(moving) => match moving.poll(cx) {
                Poll::Ready(Some(done)) => Poll::Ready(done),
                Poll::Ready(None) => Poll::Ready(Err(this.home.closed())),
                Poll::Pending => {
                    this.progress = Progress::Begun(moving);
                    Poll::Pending
                }
            },
            // Polling again after the end is the caller's mistake. This waits for ever, but does
            // not panic.
            Progress::Over => Poll::Pending,
        }
    }
}

impl<T: Send + 'static> Drop for Finishing<T> {
    fn drop(&mut self) {
        let progress = mem::replace(&mut self.progress, Progress::Over);
        if let (Progress::New(_) | Progress::Begun(_), Some(attempt)) = (&progress, &self.attempt) {
            attempt.cancel();
        }
        match progress {
            Progress::New(work) => self.home.spawn(Box::pin(work.map(drop))),
            Progress::Begun(moving) => moving.leave(),
            Progress::Over => {}
        }
    }
}

impl HomeRuntime {
    /// Runs a call to the driver in the runtime of its timers and connections. A caller in that
    /// runtime runs it in its own task. Fails with [`Error::Closed`](crate::Error::Closed) if that
    /// one has ended, or ends meanwhile.
    pub(crate) async fn ask<T: Send + 'static>(
        self: Arc<Self>,
        work: impl Future<Output = Result<T>> + Send + 'static,
    ) -> Result<T> {
        if !self.is_here() {
            return Finishing::new(&self, work).await;
        }
        self.check()?;
        tokio::select! {
            biased;
            // A caller that uses the runtime's handle outlives it. The work's timers would panic
            // then.
            () = self.end.token().cancelled() => Err(self.closed()),
            done = work => done,
        }
    }
}

#[cfg(test)]
mod tests {
    use std::{future::poll_fn, panic::Location, pin::pin};

    use tokio::sync::oneshot;

    use super::*;
    use crate::{Clock, Error};

    fn home() -> Arc<HomeRuntime> {
        HomeRuntime::new(Clock::Tokio, "a store", Location::caller())
    }

    async fn poll_once<F: Future + Unpin>(future: &mut F) -> Poll<F::Output> {
        poll_fn(|cx| Poll::Ready(Pin::new(&mut *future).poll(cx))).await
    }

    #[tokio::test]
    async fn dropped_work_is_notified_and_finished() {
        let (go, wait) = oneshot::channel::<()>();
        let attempt = Attempt::new();
        let (done, finished) = oneshot::channel();
        let work = async move {
            wait.await.unwrap();
            done.send(()).unwrap();
            Ok(())
        };
        let mut owned = Box::pin(Finishing::new(&home(), work).cancelling(attempt.clone()));
        assert!(poll_once(&mut owned).await.is_pending());
        drop(owned);
        assert!(attempt.is_cancelled());
        go.send(()).unwrap();
        finished.await.unwrap();
    }

    #[tokio::test(start_paused = true)]
    async fn work_that_is_not_polled_is_finished() {
        let (go, wait) = oneshot::channel::<()>();
        let (done, finished) = oneshot::channel();
        let work = async move {
            wait.await.unwrap();
            done.send(()).unwrap();
            Ok(7)
        };
        let mut owned = Box::pin(Finishing::new(&home(), work));
        assert!(poll_once(&mut owned).await.is_pending());
        go.send(()).unwrap();
        finished.await.unwrap();
        assert_eq!(owned.await.unwrap(), 7);
    }

    #[tokio::test(start_paused = true)]
    async fn an_output_that_is_not_collected_in_time_is_discarded() {
        let limit = Duration::from_secs(3);
        for (late, expected) in [(limit / 2, "whole"), (limit, "discarded")] {
            let (go, wait) = oneshot::channel::<()>();
            let work = async move {
                wait.await.unwrap();
                Ok("whole")
            };
            let owned = Finishing::new(&home(), work);
            let owned = owned.collected_within(limit, |_| Ok("discarded"));
            let mut owned = pin!(owned);
            assert!(poll_once(&mut owned).await.is_pending());
            tokio::time::sleep(STAY * 2).await;
            go.send(()).unwrap();
            tokio::time::sleep(late + STAY).await;
            assert_eq!(owned.await.unwrap(), expected);
        }
    }

    #[tokio::test(start_paused = true)]
    #[should_panic(expected = "at work")]
    async fn a_panic_of_the_work_reaches_its_caller() {
        let work = async {
            tokio::time::sleep(STAY * 2).await;
            panic!("at work");
            #[allow(unreachable_code, reason = "it says what the work would come to")]
            Ok(())
        };
        let _: Result<()> = Finishing::new(&home(), work).await;
    }

    #[tokio::test]
    async fn a_caller_in_another_runtime_gets_the_answer() {
        let home = home();
        let answer = std::thread::spawn(move || {
            let elsewhere = tokio::runtime::Builder::new_current_thread().build().unwrap();
            let work = async {
                tokio::time::sleep(Duration::from_millis(1)).await;
                Ok(())
            };
            elsewhere.block_on(Finishing::new(&home, work)).unwrap();
        });
        tokio::task::spawn_blocking(|| answer.join().unwrap()).await.unwrap();
    }

    /// The runtime with the work ends while a caller elsewhere waits, and before another one asks.
    #[test]
    fn a_caller_in_another_runtime_learns_of_the_end() {
        let runtime = || tokio::runtime::Builder::new_current_thread().enable_all().build();
        let (theirs, here) = (runtime().unwrap(), runtime().unwrap());
        let home = theirs.block_on(async { home() });
        let never = || Finishing::new(&home, std::future::pending::<Result<()>>());
        let mut waiting = never();
        assert!(here.block_on(poll_once(&mut waiting)).is_pending());
        drop(theirs);
        for told in [here.block_on(waiting), here.block_on(never())] {
            assert!(matches!(told, Err(Error::Closed { .. })), "{told:?}");
        }
    }
}
