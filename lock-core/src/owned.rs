//! The owner of work that must not be dropped half-way.

use std::{
    future::Future,
    mem,
    pin::Pin,
    task::{Context, Poll},
};

use tokio::{runtime::Handle, task::JoinHandle};

/// A future that is polled to its end whoever drops it.
///
/// While the caller waits, the work runs in the caller's own task: no hand-over between tasks, so an
/// uncontended acquire costs no extra wake-up. When the caller drops it half-way (a timeout, a
/// `select!`), the work moves to a task of its own and is finished there. So drivers are
/// straight-line code, and every acquire, renew and release is cancellation-safe at every await
/// point by construction.
///
/// A caller in another runtime than the client's only waits: timers belong to the runtime in which
/// they were first polled, and that one may end before the work does.
pub(crate) struct Owned<F: Future<Output: Send> + Send + 'static, D: FnOnce() + Send = fn()> {
    work: Work<F>,
    on_drop: Option<D>,
    runtime: Handle,
}

enum Work<F: Future> {
    Here(Pin<Box<F>>),
    There(JoinHandle<F::Output>),
    Over,
}

impl<F: Future<Output: Send> + Send + 'static, D: FnOnce() + Send + Unpin> Owned<F, D> {
    /// Owns `work`. `on_drop` tells the work that its caller has left.
    pub(crate) fn new(runtime: &Handle, work: F, on_drop: D) -> Self {
        let at_home = Handle::try_current().is_ok_and(|here| here.id() == runtime.id());
        let work = match at_home {
            true => Work::Here(Box::pin(work)),
            false => Work::There(runtime.spawn(work)),
        };
        Self { work, on_drop: Some(on_drop), runtime: runtime.clone() }
    }
}

impl<F: Future<Output: Send> + Send + 'static, D: FnOnce() + Send + Unpin> Future for Owned<F, D> {
    type Output = F::Output;

    fn poll(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<F::Output> {
        let this = &mut *self;
        // Taken out while it is polled: work that panics must not be polled again.
        match mem::replace(&mut this.work, Work::Over) {
            Work::Here(mut work) => match work.as_mut().poll(cx) {
                Poll::Ready(done) => return Poll::Ready(done),
                Poll::Pending => this.work = Work::Here(work),
            },
            Work::There(mut task) => match Pin::new(&mut task).poll(cx) {
                Poll::Ready(Ok(done)) => return Poll::Ready(done),
                Poll::Ready(Err(error)) if error.is_panic() => {
                    std::panic::resume_unwind(error.into_panic())
                }
                // The client's runtime has ended; there is no answer any more.
                Poll::Ready(Err(_)) => {}
                Poll::Pending => this.work = Work::There(task),
            },
            // Polling again after the end is the caller's mistake; waiting for ever is no answer to
            // anything but does not panic.
            Work::Over => {}
        }
        Poll::Pending
    }
}

impl<F: Future<Output: Send> + Send + 'static, D: FnOnce() + Send> Drop for Owned<F, D> {
    fn drop(&mut self) {
        let work = mem::replace(&mut self.work, Work::Over);
        if let (Work::Here(_) | Work::There(_), Some(on_drop)) = (&work, self.on_drop.take()) {
            on_drop();
        }
        if let Work::Here(work) = work {
            self.runtime.spawn(work);
        }
    }
}

#[cfg(test)]
mod tests {
    use tokio::sync::oneshot;

    use super::*;

    #[tokio::test]
    async fn dropped_work_is_told_and_finished() {
        let (go, wait) = oneshot::channel::<()>();
        let (told, tell) = oneshot::channel();
        let (done, finished) = oneshot::channel();
        let work = async move {
            wait.await.unwrap();
            done.send(()).unwrap();
        };
        let mut owned =
            Box::pin(Owned::new(&Handle::current(), work, move || told.send(()).unwrap()));
        assert!(futures_poll(owned.as_mut()).await.is_pending());
        drop(owned);
        tell.await.unwrap();
        go.send(()).unwrap();
        finished.await.unwrap();
    }

    async fn futures_poll<F: Future>(mut future: Pin<&mut F>) -> Poll<F::Output> {
        std::future::poll_fn(|cx| Poll::Ready(future.as_mut().poll(cx))).await
    }
}
