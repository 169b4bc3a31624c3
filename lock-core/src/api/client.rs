//! What all locks of one connection share, and one grant of it.

use std::{
    panic::Location,
    sync::{Arc, OnceLock},
    time::Duration,
};

use tokio::sync::{OnceCell, oneshot};
use tokio_util::sync::CancellationToken;

use crate::{
    Clock, ClosedBy, DistributedLock, Effect, Error, Instant, Lease, LockName, LossReason, Reach,
    Result, Term,
    driver::request::Heard,
    machine::{
        alarm::{Alarm, Slot},
        conversion::HeldAs,
        drain::Drain,
        ended_waits::EndedWaits,
        later::Later,
        runtime::HomeRuntime,
    },
};

/// What all locks of one connection share.
pub(crate) struct Client {
    pub(crate) driver: Arc<dyn DistributedLock>,
    pub(crate) clock: Clock,
    pub(crate) alarm: Arc<Alarm<Hold>>,
    pub(crate) home: Arc<HomeRuntime>,
    pub(crate) ended_waits: EndedWaits,
    pub(crate) returns: Later<Returned>,
    pub(crate) heard: Arc<Heard>,
    pub(crate) drain: Arc<Drain>,
    pub(super) reach: Reach,
    pub(crate) closed: CancellationToken,
    /// The servers' addresses, where a URL named them.
    pub(super) servers: Option<String>,
    /// What the close came to, once it is over: the words of its error, as only one can have that.
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
    /// The end of the least hold time, once the caller has the grant.
    pub(crate) floor: OnceLock<Instant>,
    /// The end of the maximum hold time.
    pub(crate) cap: Instant,
    pub(crate) slot: Slot,
}

/// A grant that is given back later.
pub(crate) enum Returned {
    /// Its holder had a margin to stop.
    Lost(Arc<Hold>),
    /// Its holder is done, and hears of the end if it waits for that.
    Kept(Arc<Hold>, oneshot::Sender<Result<()>>),
}

impl Client {
    /// A client of a driver that `caller` connected, with the addresses of its servers.
    pub(super) fn new(
        driver: impl DistributedLock,
        caller: &'static Location<'static>,
        servers: Option<String>,
    ) -> Self {
        let clock = driver.clock();
        let home = HomeRuntime::new(clock, driver.guarantees().store, caller);
        let reach = driver.reach().unwrap_or_default();
        Self {
            driver: Arc::new(driver),
            clock,
            alarm: Alarm::start(clock, &home.runtime, None),
            home,
            ended_waits: EndedWaits::default(),
            returns: Later::default(),
            heard: Arc::new(Heard::new(clock)),
            drain: Arc::default(),
            reach,
            closed: CancellationToken::new(),
            servers,
            close: OnceCell::new(),
        }
    }

    /// An error of the driver as the caller is told: with the caller's word for what failed, and where.
    pub(crate) fn told(&self, op: &'static str, error: Error) -> Error {
        match error {
            // A driver whose tasks are gone knows no other word for it.
            Error::Closed { by: ClosedBy::Program, .. } if !self.closed.is_cancelled() => {
                self.home.check().err().unwrap_or(error)
            }
            error => self.placed(error.of(op)),
        }
    }

    /// The store is out of reach, and may have done what it was asked for.
    pub(crate) fn unavailable(&self, op: &'static str, why: String) -> Error {
        let store = self.driver.guarantees().store;
        Error::Unavailable { store, op, effect: Effect::Unknown, source: why.into() }
    }

    /// The same error with the servers' addresses.
    pub(crate) fn placed(&self, error: Error) -> Error {
        error.at(self.servers.as_deref())
    }

    /// An acquire, which is over when the connection is being drained: who still waits then is a
    /// newcomer, too. Of one that comes later nothing is begun, so the store never hears of it.
    ///
    /// # Errors
    ///
    /// Its own, and [`Error::Closed`] by [`ClosedBy::Drain`].
    pub(crate) async fn unless_drained<T, F: Future<Output = Result<T>>>(
        &self,
        acquire: impl FnOnce() -> F,
    ) -> Result<T> {
        if self.drain.begun.is_cancelled() {
            return Err(self.drained_error());
        }
        tokio::select! {
            biased;
            acquired = acquire() => acquired.map_err(|error| self.of_newcomer(error)),
            () = self.drain.begun.cancelled() => Err(self.drained_error()),
        }
    }

    /// What a newcomer is told.
    pub(crate) fn drained_error(&self) -> Error {
        Error::Closed { store: self.driver.guarantees().store, by: ClosedBy::Drain }
    }

    /// What the caller of an acquire is told who met the close after a drain: it is no loss to
    /// somebody who never held the lock.
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

    /// Refuses newcomers, and waits for the guards that there are; how many are still there after
    /// `limit`, or when the connection is closed or its runtime ends.
    pub(crate) async fn drained(&self, limit: Duration) -> usize {
        self.drain.begin();
        tokio::select! {
            biased;
            () = self.drain.empty() => {}
            () = self.closed.cancelled() => {}
            () = self.home.ended().cancelled_owned() => {}
            () = tokio::time::sleep(limit) => {}
        }
        self.drain.guards()
    }
}

impl Drop for Client {
    /// Ends the streams of states, also where the driver goes on for others.
    fn drop(&mut self) {
        self.closed.cancel();
    }
}
