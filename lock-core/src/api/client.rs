//! The state that all locks of one connection share, and one grant.

use std::{
    fmt,
    panic::Location,
    sync::{Arc, Mutex, OnceLock},
    time::Duration,
};

use tokio::sync::{OnceCell, oneshot};
use tokio_util::sync::CancellationToken;

use crate::{
    Attempt, ClosedBy, DistributedLock, Effect, Error, Instant, Lease, LockName, LossReason, Reach,
    Result, Term,
    driver::{duration::shown, meter, request::Heard},
    keep::errors::{unavailable, unsupported},
    machine::{
        alarm::{Alarm, Slot},
        conversion::HeldAs,
        drain::Drain,
        ended_waits::EndedWaits,
        runtime::HomeRuntime,
    },
};

/// The longest time for which an acquire that a drain has refused leaves its queue.
const LEAVE_LIMIT: Duration = Duration::from_secs(5);

/// The state that all locks of one connection share.
pub(crate) struct Client {
    pub(crate) driver: Arc<dyn DistributedLock>,
    pub(crate) alarm: Arc<Alarm<Hold>>,
    pub(crate) home: Arc<HomeRuntime>,
    pub(crate) ended_waits: EndedWaits,
    pub(crate) heard: Arc<Heard>,
    pub(crate) drain: Drain,
    pub(super) reach: Reach,
    pub(crate) closed: CancellationToken,
    /// Cancelled when the close has ended.
    pub(crate) close_ended: CancellationToken,
    /// The servers' addresses, where a URL named them.
    pub(super) servers: Option<String>,
    /// The result of the close. It has the error's text, as the first caller gets the error itself.
    pub(super) close: OnceCell<std::result::Result<(), String>>,
}

/// One grant of a client, until it is given back.
pub(crate) struct Hold {
    pub(crate) client: Arc<Client>,
    pub(crate) name: LockName,
    pub(crate) held_as: HeldAs,
    pub(crate) lease: Box<dyn Lease>,
    pub(crate) ttl: Duration,
    pub(crate) term: Term,
    pub(crate) granted: Instant,
    /// The end of the minimum hold time, once the caller has the grant.
    pub(crate) least: OnceLock<Instant>,
    /// The end of the maximum hold time.
    pub(crate) cap: Instant,
    pub(crate) slot: Slot,
    /// Set if it is given back at a later time.
    pub(crate) later: Mutex<Option<Later>>,
}

/// How a grant is given back later. It keeps the grant alive until then.
pub(crate) struct Later {
    pub(crate) grant: Arc<Hold>,
    pub(crate) at: Instant,
    /// Of a grant that its holder has finished with: reports the end, if the holder waits. `None`
    /// for a lost grant, which is given back after a margin for its holder to stop.
    pub(crate) reply: Option<oneshot::Sender<Result<()>>>,
}

impl Client {
    /// A client of a driver that `caller` connected, with the addresses of its servers.
    pub(super) fn new(
        driver: Arc<dyn DistributedLock>,
        caller: &'static Location<'static>,
        servers: Option<String>,
    ) -> Self {
        let clock = driver.clock();
        let store = driver.guarantees().store;
        let home = HomeRuntime::new(clock, store, caller);
        let reach = driver.reach().unwrap_or_default();
        if let Some(servers) = &servers {
            reach.place(servers);
        }
        meter::describe(store);
        reach.meter(store);
        Self {
            driver,
            alarm: Alarm::start(clock, &home.runtime, &home.end),
            home,
            ended_waits: EndedWaits::default(),
            heard: Arc::new(Heard::new(clock)),
            drain: Drain::default(),
            reach,
            closed: CancellationToken::new(),
            close_ended: CancellationToken::new(),
            servers,
            close: OnceCell::new(),
        }
    }

    /// A driver's error as the caller sees it: with the caller's operation and the servers'
    /// addresses.
    pub(crate) fn failed(&self, op: &'static str, error: Error) -> Error {
        match error {
            // A driver whose tasks ended with the runtime returns this error, too.
            Error::Closed { by: ClosedBy::Program, .. } if !self.closed.is_cancelled() => {
                self.home.check().err().unwrap_or(error)
            }
            error => error.of(op).at(self.servers.as_deref()),
        }
    }

    /// [`Error::Unavailable`] with an unknown effect.
    pub(crate) fn unavailable(&self, op: &'static str, why: String) -> Error {
        unavailable(self.driver.guarantees().store, op, Effect::Unknown, why)
    }

    /// The answer of the store to a call, which may take this long.
    pub(crate) async fn answer<T>(
        &self,
        limit: Duration,
        call: impl Future<Output = Result<T>>,
        op: &'static str,
    ) -> Result<T> {
        let answer = tokio::time::timeout(limit, call).await;
        answer.unwrap_or_else(|_| Err(self.unanswered(limit, op)))
    }

    pub(crate) fn unanswered(&self, limit: Duration, op: &'static str) -> Error {
        self.unavailable(op, format!("no answer within {}", shown(limit)))
    }

    /// The error of a call that this store, or this lock, is not made for.
    pub(crate) fn unsupported(&self, what: impl Into<String>) -> Error {
        unsupported(self.driver.guarantees().store, what)
    }

    /// Runs an acquire until the connection is being drained: then an acquire that still waits is
    /// refused like a new one. A later acquire is not begun, so the store sees nothing of it.
    ///
    /// The acquire of an `attempt` is cancelled then, and one without leaves by itself. The error
    /// comes when it has left, since the process may end with it; that takes 5 s at most. A drain
    /// waits for none of this: a caller that holds one lock may wait for another.
    pub(crate) async fn unless_drained<T, F: Future<Output = Result<T>>>(
        &self,
        attempt: Option<&Attempt>,
        acquire: impl FnOnce() -> F,
    ) -> Result<T> {
        if self.drain.begun.is_cancelled() {
            return Err(self.drained_error());
        }
        let acquire = acquire();
        tokio::pin!(acquire);
        tokio::select! {
            biased;
            acquired = &mut acquire => {
                self.after_loss(&acquired).await;
                return acquired.map_err(|error| self.of_newcomer(error));
            }
            () = self.drain.begun.cancelled() => {}
        }
        if let Some(attempt) = attempt {
            attempt.cancel();
        }
        Box::pin(self.leaving(acquire)).await
    }

    /// The end of an acquire that has been cancelled by a drain.
    async fn leaving<T>(&self, acquire: impl Future<Output = Result<T>>) -> Result<T> {
        tokio::select! {
            biased;
            acquired = acquire => if acquired.is_ok() {
                // Its guard was counted before the drain began, which waits for it.
                return acquired;
            },
            () = self.close_ended.cancelled() => {}
            () = self.home.clock.sleep(LEAVE_LIMIT) => {}
        }
        Err(self.drained_error())
    }

    /// Waits for the end of a close that has begun: what it ended is still in the store until then,
    /// and a caller may end the process as soon as it hears of it.
    pub(crate) async fn after_close(&self) {
        if self.closed.is_cancelled() {
            tokio::select! {
                () = self.close_ended.cancelled() => {}
                () = self.home.ended().cancelled_owned() => {}
            }
        }
    }

    /// Waits for the end of a close that has taken the lock: the process may end with this error.
    pub(crate) async fn after_loss<T>(&self, told: &Result<T>) {
        if matches!(told, Err(Error::Lost { reason: LossReason::Closed, .. })) {
            Box::pin(self.after_close()).await;
        }
    }

    /// The error of an acquire during a drain.
    pub(crate) fn drained_error(&self) -> Error {
        let store = self.driver.guarantees().store;
        Error::Closed { store, name: None, by: ClosedBy::Drain }
    }

    /// The error of an acquire that was ended by the close after a drain. It is no loss for a
    /// caller that never held the lock.
    pub(crate) fn of_newcomer(&self, error: Error) -> Error {
        let by_close = matches!(
            error,
            Error::Lost { reason: LossReason::Closed, .. }
                | Error::Closed { by: ClosedBy::Program, .. }
        );
        match by_close && self.drain.begun.is_cancelled() {
            true => self.drained_error(),
            false => error,
        }
    }

    /// Refuses new acquires, and waits for the existing guards. Returns how many are left after
    /// `limit`, or when the connection is closed or its runtime ends.
    pub(crate) async fn drained(&self, limit: Duration) -> usize {
        tokio::select! {
            biased;
            () = self.drain.run() => 0,
            () = self.pause(limit, std::future::pending()) => self.drain.guards(),
        }
    }

    /// Waits for this time, but not longer than until `event`, a close, or the end of the runtime.
    pub(crate) async fn pause(&self, limit: Duration, event: impl Future<Output = ()>) {
        tokio::select! {
            biased;
            () = event => {}
            () = self.closed.cancelled() => {}
            () = self.home.ended().cancelled_owned() => {}
            () = self.home.clock.sleep(limit) => {}
        }
    }
}

impl fmt::Debug for Client {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let mut debug = f.debug_struct("Client");
        debug.field("store", &self.driver.guarantees().store);
        if let Some(servers) = &self.servers {
            debug.field("at", servers);
        }
        debug.finish_non_exhaustive()
    }
}

impl Drop for Client {
    /// Ends the streams of states, also if other users keep the driver.
    fn drop(&mut self) {
        self.closed.cancel();
    }
}
