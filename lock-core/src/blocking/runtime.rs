//! The runtime behind a blocking connection.

use std::{
    fmt,
    future::Future,
    pin::pin,
    sync::Arc,
    task::{Context, Waker},
    time::Duration,
};

use tokio::{
    runtime::{Builder, Handle, Runtime, RuntimeFlavor},
    task::coop::consume_budget,
    time::timeout,
};

use crate::{
    Clock, Effect, Error, Locks, Result,
    keep::errors::{unavailable, unsupported},
};

/// How long a drop waits for the store.
const DROP_LIMIT: Duration = Duration::from_secs(1);

/// A connection and the runtime that it lives in.
pub(super) struct Connected {
    pub(super) locks: Locks,
    runtime: Option<Arc<Runtime>>,
}

/// A part of the async API, and the connection in whose runtime its calls are waited for.
#[derive(Clone, Debug)]
pub(super) struct On<T> {
    pub(super) connected: Arc<Connected>,
    pub(super) it: T,
}

impl Connected {
    pub(super) fn on<T>(self: &Arc<Self>, it: T) -> On<T> {
        On { connected: self.clone(), it }
    }

    /// Connects in a runtime of its own.
    pub(super) fn open(connect: impl IntoFuture<Output = Result<Locks>>) -> Result<Self> {
        refuse_inside_async("connect")?;
        let runtime = Builder::new_multi_thread()
            .worker_threads(1)
            .thread_name("distlock")
            .enable_all()
            .build()
            .map_err(|why| unavailable("distlock", "start a thread", Effect::None, why))?;
        Self::open_in(runtime.into(), connect)
    }

    /// Connects in a runtime.
    pub(super) fn open_in(
        runtime: Arc<Runtime>,
        connect: impl IntoFuture<Output = Result<Locks>>,
    ) -> Result<Self> {
        refuse_inside_async("connect")?;
        let locks = runtime.block_on(async { connect.await })?;
        let store = locks.guarantees().store;
        // Only a virtual clock stands still between two calls.
        let unattended = stops_between_calls(&runtime) && locks.driver().clock() == Clock::Boot;
        let connected = Self { locks, runtime: Some(runtime) };
        match unattended {
            false => Ok(connected),
            true => Err(unsupported(
                store,
                "renew anything on a current-thread runtime, which stands still between two calls; \
                 use a multi-thread one",
            )),
        }
    }

    /// Waits for a part of the async API that has an end of its own.
    pub(super) fn get<T>(
        self: &Arc<Self>,
        what: &'static str,
        work: impl Future<Output = Result<T>>,
    ) -> Result<On<Option<T>>> {
        Ok(self.on(Some(self.wait(what, work)?)))
    }

    /// Waits for a call to the locks.
    pub(super) fn wait<T>(
        &self,
        what: &'static str,
        work: impl Future<Output = Result<T>>,
    ) -> Result<T> {
        refuse_inside_async(what)?;
        match &self.runtime {
            Some(runtime) => runtime.block_on(work),
            // Only during its drop, when no call can come.
            None => Err(Error::closed(self.locks.guarantees().store)),
        }
    }

    /// Finishes work that a `drop` has begun: waits for it for some time, or, inside an async
    /// runtime, leaves it to the background. A failure is traced; a lock that is not released ends
    /// with its TTL.
    pub(super) fn finish(&self, work: impl Future<Output = Result<()>> + Send + 'static) {
        let Some(runtime) = &self.runtime else { return };
        if stops_between_calls(runtime) && !is_polled() {
            let _ = runtime.block_on(async { timeout(DROP_LIMIT, tokio::spawn(work)).await });
            return;
        }
        let (done, wait) = std::sync::mpsc::channel();
        runtime.spawn(async move { done.send(work.await) });
        if !is_polled() {
            let _ = wait.recv_timeout(DROP_LIMIT);
        }
    }
}

fn stops_between_calls(runtime: &Runtime) -> bool {
    runtime.handle().runtime_flavor() == RuntimeFlavor::CurrentThread
}

fn refuse_inside_async(what: &str) -> Result<()> {
    match is_polled() {
        false => Ok(()),
        true => {
            let what = format!("{what} inside an async runtime; use the async API there");
            Err(unsupported("the blocking API", what))
        }
    }
}

/// Whether tokio polls this code, so that it must not block. Threads for blocking work belong to a
/// runtime, too, and may block; the difference is the budget that tokio gives to polled code.
fn is_polled() -> bool {
    let mut context = Context::from_waker(Waker::noop());
    let mut exhausts = || pin!(consume_budget()).poll(&mut context).is_pending();
    Handle::try_current().is_ok() && (0..=u8::MAX).any(|_| exhausts())
}

impl Drop for Connected {
    /// Closes on another thread. The present thread may be one that must not block, and a runtime
    /// that is shut down drops its remaining work, also releases.
    fn drop(&mut self) {
        let (ending, locks) = (Ending(self.runtime.take()), self.locks.clone());
        let close = move || {
            // The whole closure moves in, and ends here.
            let Ending(Some(runtime)) = &ending else { return };
            let _ = runtime.block_on(async { timeout(DROP_LIMIT, locks.close()).await });
        };
        // Without a thread, held locks end with their TTL.
        let thread = std::thread::Builder::new();
        let Ok(closing) = thread.name("distlock-close".to_owned()).spawn(close) else { return };
        if !is_polled() {
            // The thread does not panic.
            let _ = closing.join();
        }
    }
}

/// A runtime that may end on any thread, unless others use it.
struct Ending(Option<Arc<Runtime>>);

impl Drop for Ending {
    fn drop(&mut self) {
        if let Some(runtime) = self.0.take().and_then(Arc::into_inner) {
            runtime.shutdown_background();
        }
    }
}

impl fmt::Debug for Connected {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.locks.fmt(f)
    }
}
