//! Clients that can be paused and killed.

use std::{
    future::Future,
    sync::mpsc,
    thread::{self, JoinHandle},
};

use lock_core::BoxFuture;
use tokio::{runtime::Handle, sync::oneshot};

use crate::Failure;

/// A runtime on its own thread for one client. It can stand still, as in a garbage collector's
/// pause or after SIGSTOP. It can end abruptly, as after SIGKILL. The store sees no difference: the
/// client's connections are silent, or closed.
///
/// Dropping it kills the client.
#[derive(Debug)]
pub(crate) struct Actor {
    handle: Handle,
    end: Option<oneshot::Sender<()>>,
    thread: Option<JoinHandle<()>>,
}

impl Actor {
    pub(crate) fn start(name: &str) -> Result<Self, Failure> {
        let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build()?;
        let (handle, (end, ended)) = (runtime.handle().clone(), oneshot::channel());
        let body = move || {
            let _ = runtime.block_on(ended);
            // The tasks left in it do not run any more.
            runtime.shutdown_background();
        };
        let thread = thread::Builder::new().name(name.to_owned()).spawn(body)?;
        Ok(Self { handle, end: Some(end), thread: Some(thread) })
    }

    /// Runs a future in the client's runtime, and waits for its result.
    ///
    /// Fails if the client is killed meanwhile.
    ///
    /// If this future is dropped, the given one still runs to its end.
    pub(crate) async fn run<T: Send + 'static>(
        &self,
        work: impl Future<Output = T> + Send + 'static,
    ) -> Result<T, Failure> {
        // On the heap: a task is compiled for each type of future.
        let work: BoxFuture<'static, T> = Box::pin(work);
        Ok(self.handle.spawn(work).await?)
    }

    /// Stops the client's thread until the pause is dropped or ended: no timers, no replies, no
    /// renewals. Returns when the thread stands still.
    pub(crate) async fn pause(&self) -> Result<Pause, Failure> {
        let (go_on, wait) = mpsc::channel::<()>();
        let (stands, standing) = oneshot::channel();
        self.handle.spawn(async move {
            let _ = stands.send(());
            // Blocks the only thread of the runtime, on purpose.
            let _ = wait.recv();
        });
        standing.await?;
        Ok(Pause { _go_on: go_on })
    }

    /// Ends the client abruptly: its tasks stop at their current step, its connections are closed.
    /// The caller passes all guards and clients made by its futures in `held`, so that they are
    /// forgotten, not dropped.
    pub(crate) fn kill<T>(mut self, held: T) {
        std::mem::forget(held);
        self.end();
    }

    fn end(&mut self) {
        drop(self.end.take());
        if let Some(thread) = self.thread.take() {
            let _ = thread.join();
        }
    }
}

impl Drop for Actor {
    fn drop(&mut self) {
        self.end();
    }
}

/// A pause of an [`Actor`]. Dropping it ends the pause.
#[derive(Debug)]
pub(crate) struct Pause {
    _go_on: mpsc::Sender<()>,
}

impl Pause {
    pub(crate) fn end(self) {}
}
