//! The thread of the clients of this process.

use std::{io, thread};

use tokio::{
    runtime::{Builder, Handle},
    sync::oneshot,
};

use crate::{Failure, cores};

/// One thread with a runtime of its own, on the clients' cores. Its end ends all its tasks.
pub(crate) struct Place {
    runtime: Handle,
    _leash: oneshot::Sender<()>,
}

impl Place {
    pub(crate) fn start() -> Result<Self, Failure> {
        let (leash, end) = oneshot::channel::<()>();
        let (tell, told) = std::sync::mpsc::channel::<io::Result<Handle>>();
        thread::Builder::new().name("bench clients".into()).spawn(move || {
            match cores::keep_clients()
                .and_then(|()| Builder::new_current_thread().enable_all().build())
            {
                Ok(runtime) => {
                    let _ = tell.send(Ok(runtime.handle().clone()));
                    let _ = runtime.block_on(end);
                    runtime.shutdown_background();
                }
                Err(error) => drop(tell.send(Err(error))),
            }
        })?;
        let runtime = told.recv()??;
        Ok(Self { runtime, _leash: leash })
    }

    /// Runs a future on the thread.
    pub(crate) async fn run<T: Send + 'static>(
        &self,
        work: impl Future<Output = T> + Send + 'static,
    ) -> Result<T, Failure> {
        Ok(self.runtime.spawn(work).await?)
    }
}
