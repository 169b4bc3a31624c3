//! The runtime in which a connection lives.

use std::{panic::Location, sync::Arc, thread};

use tokio::runtime::{Handle, RuntimeFlavor};
use tokio_util::sync::CancellationToken;

use crate::{
    BoxFuture, Clock, ClosedBy, Error, Instant, Result,
    machine::{
        alarm::{Alarm, Watched},
        end::End,
    },
};

/// The runtime for work that leaves its caller's task, and a flag that is set when it has ended.
///
/// A runtime drops its tasks when it ends, and dropping the alarm's task sets the flag. So one flag
/// serves all stores, however the runtime ends, and no call goes to a driver without tasks.
pub(crate) struct HomeRuntime {
    pub(crate) runtime: Handle,
    pub(crate) clock: Clock,
    pub(crate) alarm: Arc<Alarm<dyn Watched>>,
    pub(crate) end: Arc<End>,
    store: &'static str,
    /// Itself, described for people.
    origin: Arc<str>,
    /// The process that connected.
    process: u32,
}

impl HomeRuntime {
    /// The present runtime, for a connection to `store` that `caller` made. Panics outside a tokio
    /// runtime.
    pub(crate) fn new(
        clock: Clock,
        store: &'static str,
        caller: &'static Location<'static>,
    ) -> Arc<Self> {
        let (runtime, end) = (Handle::current(), Arc::new(End::default()));
        let alarm = Alarm::start(clock, &runtime, &end);
        let origin = described(&runtime, caller).into();
        let process = std::process::id();
        Arc::new(Self { runtime, clock, alarm, end, store, origin, process })
    }

    /// Starts a task in it. Boxed, so that a task is compiled once, and not for each output.
    pub(super) fn spawn(&self, work: BoxFuture<'static, ()>) {
        self.runtime.spawn(work);
    }

    pub(crate) fn is_here(&self) -> bool {
        Handle::try_current().is_ok_and(|here| here.id() == self.runtime.id())
    }

    /// Reads the client's clock, also from another runtime. That clock may exist in its runtime
    /// only.
    pub(crate) fn now(&self) -> Instant {
        let own = self.clock == Clock::Tokio && !self.is_here();
        let _there = own.then(|| self.runtime.enter());
        self.clock.now()
    }

    /// Refuses a call after the end of the runtime.
    pub(crate) fn check(&self) -> Result<()> {
        match self.end.has_come() {
            true => Err(self.closed()),
            false => Ok(()),
        }
    }

    /// Refuses a call in a process that was forked from the one that connected: it has none of the
    /// runtime's threads, and the same sockets. So is every call after the end of the runtime.
    pub(crate) fn check_process(&self) -> Result<()> {
        match std::process::id() == self.process {
            true => self.check(),
            false => Err(Error::Closed { store: self.store, name: None, by: ClosedBy::Fork }),
        }
    }

    /// The error of a call after the end.
    pub(crate) fn closed(&self) -> Error {
        let by = ClosedBy::Runtime(self.origin.clone());
        Error::Closed { store: self.store, name: None, by }
    }

    /// A token that is cancelled when the runtime has ended. It keeps nothing alive.
    pub(crate) fn ended(&self) -> CancellationToken {
        self.end.token().clone()
    }
}

/// The runtime that connected, for people.
fn described(runtime: &Handle, caller: &Location<'_>) -> String {
    let flavor = match runtime.runtime_flavor() {
        RuntimeFlavor::CurrentThread => "current-thread",
        _ => "multi-thread",
    };
    let (id, file, line) = (runtime.id(), caller.file(), caller.line());
    let thread = thread::current().name().map(|name| format!(" on thread {name:?}"));
    let thread = thread.unwrap_or_default();
    format!("{flavor} runtime {id}, in which {file}:{line} connected{thread}")
}

#[cfg(test)]
mod tests {
    use super::*;

    /// No safe function forks a process.
    #[tokio::test]
    async fn a_forked_process_is_told_so() {
        let mut home = HomeRuntime::new(Clock::Tokio, "test", Location::caller());
        home.check_process().unwrap();
        Arc::get_mut(&mut home).unwrap().process += 1;
        let told = home.check_process().unwrap_err();
        assert!(told.is_closed() && told.to_string().contains("connect in each process"), "{told}");
    }
}
