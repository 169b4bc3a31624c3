//! Clients that can be paused and killed.

use std::{
    future::Future,
    sync::mpsc,
    thread::{self, JoinHandle},
};

use tokio::{runtime::Handle, sync::oneshot};

use crate::Failure;

/// A runtime on a thread of its own, in which one client lives: it can stand still as in a pause of
/// a garbage collector or after SIGSTOP, and it can end without a word, as with SIGKILL. The store
/// sees no difference: its connections are silent, or closed.
///
/// Dropping it kills the client.
#[derive(Debug)]
pub struct Actor {
    handle: Handle,
    end: Option<oneshot::Sender<()>>,
    thread: Option<JoinHandle<()>>,
}

impl Actor {
    /// Starts the runtime.
    ///
    /// # Errors
    ///
    /// The system's, if there is no thread or no runtime to be had.
    pub fn start(name: &str) -> Result<Self, Failure> {
        let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build()?;
        let (handle, (end, ended)) = (runtime.handle().clone(), oneshot::channel());
        let body = move || {
            let _ = runtime.block_on(ended);
            // Nothing that stands in it is carried out any more.
            runtime.shutdown_background();
        };
        let thread = thread::Builder::new().name(name.to_owned()).spawn(body)?;
        Ok(Self { handle, end: Some(end), thread: Some(thread) })
    }

    /// Carries out a future in the client's runtime, and waits for it.
    ///
    /// # Errors
    ///
    /// If the future panics, or the client is killed meanwhile.
    ///
    /// # Cancel safety
    ///
    /// The future goes on when this one is dropped.
    pub async fn run<T: Send + 'static>(
        &self,
        work: impl Future<Output = T> + Send + 'static,
    ) -> Result<T, Failure> {
        Ok(self.handle.spawn(work).await?)
    }

    /// Stops the client's thread until the pause is dropped or ended: no timer, no answer, no
    /// renewal. Returns when it stands still.
    ///
    /// # Errors
    ///
    /// If the client is killed already.
    pub async fn pause(&self) -> Result<Pause, Failure> {
        let (go_on, wait) = mpsc::channel::<()>();
        let (stands, standing) = oneshot::channel();
        self.handle.spawn(async move {
            let _ = stands.send(());
            // It blocks the only thread of the runtime: that is its purpose.
            let _ = wait.recv();
        });
        standing.await?;
        Ok(Pause { _go_on: go_on })
    }

    /// Ends the client without a word: its tasks end where they stand, its connections are closed.
    /// Guards and clients that its futures have handed out must be given, so that they are
    /// forgotten instead of dropped.
    pub fn kill<T>(mut self, held: T) {
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

/// A pause of an [`Actor`], which goes on when this is dropped.
#[derive(Debug)]
pub struct Pause {
    _go_on: mpsc::Sender<()>,
}

impl Pause {
    /// Lets the client go on.
    pub fn end(self) {}
}
