//! The runtime behind a blocking connection.

use std::{fmt, future::Future, time::Duration};

use tokio::{
    runtime::{Builder, Handle, Runtime},
    time::timeout,
};

use crate::{Connect, Effect, Error, Locks, Result};

/// How long dropping something waits for the store.
const DROP_LIMIT: Duration = Duration::from_secs(1);

/// A connection and the runtime that it lives in.
pub(super) struct Connected {
    pub(super) locks: Locks,
    runtime: Option<Runtime>,
}

impl Connected {
    pub(super) fn open(connect: Connect) -> Result<Self> {
        refuse_inside_async("connect")?;
        let runtime = Builder::new_multi_thread()
            .worker_threads(1)
            .thread_name("distlock")
            .enable_all()
            .build()
            .map_err(|error| Error::Unavailable {
                store: "distlock",
                op: "start a thread",
                effect: Effect::None,
                source: error.into(),
            })?;
        let locks = runtime.block_on(connect.into_future())?;
        Ok(Self { locks, runtime: Some(runtime) })
    }

    /// Waits for something.
    ///
    /// # Errors
    ///
    /// Its own, and [`Error::Unsupported`] inside an async runtime.
    pub(super) fn wait<T>(
        &self,
        what: &'static str,
        work: impl Future<Output = Result<T>>,
    ) -> Result<T> {
        refuse_inside_async(what)?;
        match &self.runtime {
            Some(runtime) => runtime.block_on(work),
            // Only while it is being dropped, and then nobody can call this.
            None => Err(Error::Closed { store: self.locks.guarantees().store }),
        }
    }

    /// Does something that a `drop` has begun: waits for it a while, or, inside an async runtime,
    /// leaves it to the background.
    pub(super) fn finish(&self, work: impl Future<Output = Result<()>> + Send + 'static) {
        let Some(runtime) = &self.runtime else { return };
        match Handle::try_current() {
            // A failure is traced; what is not released ends with its TTL.
            Err(_) => drop(runtime.block_on(async { timeout(DROP_LIMIT, work).await })),
            Ok(_) => drop(runtime.spawn(work)),
        }
    }
}

fn refuse_inside_async(what: &str) -> Result<()> {
    match Handle::try_current() {
        Err(_) => Ok(()),
        Ok(_) => Err(Error::Unsupported {
            store: "the blocking API",
            what: format!("{what} inside an async runtime; use the async API there"),
        }),
    }
}

impl Drop for Connected {
    fn drop(&mut self) {
        let locks = self.locks.clone();
        self.finish(async move { locks.close().await });
        if let Some(runtime) = self.runtime.take() {
            // Does not block: this may be a thread that must not.
            runtime.shutdown_background();
        }
    }
}

impl fmt::Debug for Connected {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.locks.fmt(f)
    }
}
