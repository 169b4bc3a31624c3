//! A place for clients.

use std::{
    panic::resume_unwind,
    sync::Arc,
    thread::{self, JoinHandle as Thread},
};

use tokio::{
    runtime::{Builder, Handle, Runtime},
    sync::oneshot,
    task::{AbortHandle, JoinHandle},
};

use super::{
    place::{Node, Place},
    router::Router,
};
use crate::LabError;

/// A place for clients in a [`Network`](crate::Network): one thread with a tokio runtime of its
/// own.
///
/// Futures here use the network from here, with all tasks, threads and processes that they start.
/// So clients of one process can stand on different sides of a cut, and share one clock. The
/// runtime has one thread: a client that blocks it stops all clients of the side.
///
/// A [`Proxy`](crate::Proxy) that is started here listens here, for clients of this side.
///
/// Dropping the side ends its tasks and waits for its thread.
#[derive(Debug)]
pub struct Side {
    place: Place,
    runtime: Handle,
    thread: Option<Thread<()>>,
    /// Closing this ends the thread.
    leash: Option<oneshot::Sender<()>>,
    /// Keeps the network whole as long as the side.
    _router: Arc<Router>,
}

impl Side {
    pub(super) fn start(node: Node, router: Arc<Router>) -> Result<Self, LabError> {
        let place = node.place();
        let (leash, end) = oneshot::channel::<()>();
        let (tell, told) = std::sync::mpsc::channel();
        let body = move || {
            let runtime = node.namespace().enter().and_then(|()| runtime());
            if let Some(runtime) = report(runtime, &tell) {
                let _ = runtime.block_on(end);
                // A name look-up in progress must not delay a drop.
                runtime.shutdown_background();
            }
        };
        let refused = || LabError::io(format!("making the side {place}"));
        let thread = thread::Builder::new().name(format!("side {place}"));
        let thread = thread.spawn(body).map_err(refused())?;
        let gone = || std::io::Error::other("its thread is gone");
        let runtime = told.recv().unwrap_or_else(|_| Err(gone())).map_err(refused())?;
        Ok(Self { place, runtime, thread: Some(thread), leash: Some(leash), _router: router })
    }

    /// Returns the place of the side.
    pub fn place(&self) -> Place {
        self.place
    }

    /// Runs a future here, and returns its output.
    pub async fn run<T: Send + 'static>(
        &self,
        future: impl Future<Output = T> + Send + 'static,
    ) -> T {
        let task = self.spawn(future);
        let _cancel = Cancel(task.abort_handle());
        match task.await {
            Ok(output) => output,
            Err(error) if error.is_panic() => resume_unwind(error.into_panic()),
            Err(_) => panic!("the side {} has ended", self.place),
        }
    }

    /// Starts a task here.
    pub fn spawn<T: Send + 'static>(
        &self,
        future: impl Future<Output = T> + Send + 'static,
    ) -> JoinHandle<T> {
        self.runtime.spawn(future)
    }
}

impl Drop for Side {
    fn drop(&mut self) {
        self.leash = None;
        if let Some(thread) = self.thread.take()
            && thread.thread().id() != thread::current().id()
        {
            let _ = thread.join();
        }
    }
}

struct Cancel(AbortHandle);

impl Drop for Cancel {
    fn drop(&mut self) {
        self.0.abort();
    }
}

fn runtime() -> std::io::Result<Runtime> {
    Builder::new_current_thread().enable_all().build()
}

/// Passes the outcome to the waiting thread.
fn report(
    runtime: std::io::Result<Runtime>,
    tell: &std::sync::mpsc::Sender<std::io::Result<Handle>>,
) -> Option<Runtime> {
    let (handle, runtime) = match runtime {
        Ok(runtime) => (Ok(runtime.handle().clone()), Some(runtime)),
        Err(error) => (Err(error), None),
    };
    let _ = tell.send(handle);
    runtime
}
