//! The owner of work that must not be dropped half-way.

use std::{
    future::Future,
    pin::Pin,
    task::{Context, Poll},
};

use tokio::runtime::Handle;

/// A future that is polled to its end whoever drops it.
///
/// While the caller waits, the work runs in the caller's own task: no hand-over between tasks, so an
/// uncontended acquire costs no extra wake-up. When the caller drops it half-way (a timeout, a
/// `select!`), the work moves to a task of its own and is finished there. So drivers are
/// straight-line code, and every acquire, renew and release is cancellation-safe at every await
/// point by construction.
pub(crate) struct Owned<F: Future<Output: Send> + Send + 'static, D: FnOnce() + Send = fn()> {
    work: Option<Pin<Box<F>>>,
    on_drop: Option<D>,
    runtime: Handle,
}

impl<F: Future<Output: Send> + Send + 'static, D: FnOnce() + Send + Unpin> Owned<F, D> {
    /// Owns `work`. `on_drop` tells the work that its caller has left.
    pub(crate) fn new(runtime: &Handle, work: F, on_drop: D) -> Self {
        Self { work: Some(Box::pin(work)), on_drop: Some(on_drop), runtime: runtime.clone() }
    }
}

impl<F: Future<Output: Send> + Send + 'static, D: FnOnce() + Send + Unpin> Future for Owned<F, D> {
    type Output = F::Output;

    fn poll(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<F::Output> {
        let this = &mut *self;
        // Polling again after the end is the caller's mistake; waiting for ever is no answer to
        // anything but does not panic.
        let Some(work) = &mut this.work else { return Poll::Pending };
        let done = std::task::ready!(work.as_mut().poll(cx));
        this.work = None;
        Poll::Ready(done)
    }
}

impl<F: Future<Output: Send> + Send + 'static, D: FnOnce() + Send> Drop for Owned<F, D> {
    fn drop(&mut self) {
        let Some(work) = self.work.take() else { return };
        if let Some(on_drop) = self.on_drop.take() {
            on_drop();
        }
        self.runtime.spawn(work);
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
