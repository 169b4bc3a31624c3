//! A look at a lock that is held.

use std::{
    any::Any,
    fmt,
    future::Future,
    sync::{Arc, OnceLock},
    time::Duration,
};

use crate::{
    Error, Facts, FencingToken, Instant, Kind, Lease, LockName, LossReason, Result, Term, Ticket,
    Validity,
    api::locks::Client,
    deadline,
    driver::trace,
    machine::{
        alarm::{HasSlot, Slot, Watched},
        conversion::Grip,
        finish::Owned,
    },
};

/// A look at a lock that is held: its token, its deadline, its loss. Cheap to clone; holding on to
/// it does not hold the lock.
///
/// A [`LockGuard`](crate::LockGuard) derefs to this, and [`Lock::run`](crate::Lock::run) gives it
/// to the work.
#[derive(Clone)]
pub struct Held(pub(crate) Arc<Inner>);

pub(crate) struct Inner {
    pub(crate) client: Arc<Client>,
    pub(crate) name: LockName,
    pub(crate) grip: Grip,
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

impl Held {
    /// The lock's name.
    pub fn name(&self) -> &LockName {
        &self.0.name
    }

    /// What is held: exclusive, shared, or permits.
    pub fn kind(&self) -> Kind {
        self.0.grip.kind()
    }

    /// The fencing token of this grant: give it to the resource that the lock protects.
    pub fn token(&self) -> FencingToken {
        self.0.lease.token()
    }

    /// Whether the lock is still held, by this process's own reckoning: not released, not lost, and
    /// its deadline not passed. Reads the clock, so it is right as the first thing after a pause.
    pub fn is_valid(&self) -> bool {
        !self.remaining().is_zero()
    }

    /// How long the lock is still held if no renewal comes any more; zero if it is not held. The
    /// margin before somebody else can get it is already taken off.
    pub fn remaining(&self) -> Duration {
        match self.0.lease.validity().has_ended() {
            true => Duration::ZERO,
            false => self.0.until().since(self.0.client.home.now()),
        }
    }

    /// The name of the store that granted it, as in
    /// [`Guarantees::store`](crate::Guarantees::store).
    pub fn store(&self) -> &'static str {
        self.0.client.driver.guarantees().store
    }

    /// What the store said about itself with the answer that made the grant's entry: etcd's revision,
    /// cluster, member and term. Asks nobody.
    pub fn facts(&self) -> Facts {
        self.0.lease.facts()
    }

    /// The store's own lease, if the lock was granted by the driver that it belongs to; `None` for
    /// another store. A driver's lease knows the store's own condition for a write that only the
    /// holder may do, so that the store itself refuses everybody else.
    pub fn lease_as<L: Lease>(&self) -> Option<&L> {
        let lease: &dyn Any = &*self.0.lease;
        lease.downcast_ref()
    }

    pub(crate) fn check(&self) -> Result<()> {
        self.0.check()
    }

    /// Waits until the lock is lost, and says how. Ready before anybody else can be granted the
    /// lock; never ready after a release. The future borrows nothing. It is also ready when the
    /// runtime in which the store was connected has ended
    /// ([`LossReason::RuntimeEnded`]): nothing renews the lock from then on, and only
    /// [`is_valid`](Self::is_valid) tells for how long it is still held.
    ///
    /// # Cancel safety
    ///
    /// Dropping the future forgets the wait and nothing else.
    pub fn lost(&self) -> impl Future<Output = LossReason> + Send + use<> {
        let (validity, ended) = (self.0.lease.validity().clone(), self.0.client.home.ended());
        async move {
            tokio::select! {
                biased;
                reason = validity.lost() => reason,
                () = ended.cancelled() => match validity.has_ended() {
                    // Released: never ready.
                    true => validity.lost().await,
                    false => LossReason::RuntimeEnded,
                },
            }
        }
    }

    /// Renews the lock for one TTL now. Only needed for a fixed term; the watchdog does it
    /// otherwise. The maximum hold time still counts from the grant.
    ///
    /// # Errors
    ///
    /// [`Error::Lost`] if the lock is not held any more, [`Error::Unavailable`] if the store did
    /// not answer, [`Error::Closed`] if the runtime that connected has ended.
    ///
    /// # Cancel safety
    ///
    /// Dropping the future does not stop a renewal that was sent.
    pub async fn renew(&self) -> Result<()> {
        self.0.check_all()?;
        let inner = self.0.clone();
        let renewal = async move {
            inner.lease.renew().await.map_err(|error| inner.client.told("renew", error))
        };
        Owned::new(&self.0.client.home, renewal, || {}).await?;
        self.0.check()
    }
}

impl Inner {
    fn validity(&self) -> &Validity {
        self.lease.validity()
    }

    pub(crate) fn until(&self) -> Instant {
        self.validity().until().min(self.cap)
    }

    /// Ends the grant if its deadline has passed, also when the alarm has not rung yet.
    ///
    /// # Errors
    ///
    /// [`Error::Lost`] if the grant is over.
    pub(crate) fn check(self: &Arc<Self>) -> Result<()> {
        if self.client.home.now() >= self.until() {
            self.expire();
        }
        match self.validity().loss() {
            Some(reason) => Err(self.loss_error(reason)),
            None => Ok(()),
        }
    }

    /// Whether anything can still be done with the grant.
    ///
    /// # Errors
    ///
    /// [`Error::Closed`] if the client's runtime has ended, [`Error::Lost`] if the grant is over.
    pub(crate) fn check_all(self: &Arc<Self>) -> Result<()> {
        self.client.home.check()?;
        self.check()
    }

    pub(crate) fn loss_error(&self, reason: LossReason) -> Error {
        Error::Lost { name: self.name.clone(), reason }
    }

    /// What stands for the grant now that it is left to be adopted.
    pub(crate) fn ticket(&self, place: String) -> Ticket {
        let store = self.client.driver.guarantees().store;
        let now = self.client.home.now();
        let hold_left = (self.cap != Instant::NEVER).then(|| self.cap.since(now));
        let (token, term) = (self.lease.token(), (self.ttl, self.term));
        Ticket::new(store, self.name.clone(), token, term, hold_left, place)
    }

    fn expire(self: &Arc<Self>) {
        let reason = match self.term {
            _ if self.cap <= self.validity().until() => LossReason::MaxHold,
            Term::Fixed => LossReason::TermOver,
            Term::Renewed => LossReason::Expired,
        };
        if !self.validity().lose(reason) {
            return;
        }
        self.client.alarm.remove(&**self);
        let margin = deadline::margin(self.ttl);
        let pause = match reason {
            LossReason::Expired if self.lease.ends_by_itself() => return,
            // A session that was not renewed either has ended by then, and all of its entries with
            // it.
            LossReason::Expired => margin * 2,
            // The holder has time to stop: given back at once, the lock would be the next holder's
            // before this one has heard of its loss.
            _ => margin,
        };
        self.clone().give_back_at(self.client.home.now() + pause);
    }

    /// Until when the grant is kept although its holder gives it back; `None` if it may go at once.
    pub(crate) fn kept_until(&self) -> Option<Instant> {
        self.floor.get().copied().filter(|floor| *floor > self.client.home.now())
    }

    /// Ends the grant as released; whether nothing has ended it before.
    pub(crate) fn end(&self) -> bool {
        let first = self.validity().release();
        if first {
            self.client.alarm.remove(self);
        }
        first
    }

    /// Removes the grant's entry from the store.
    pub(crate) async fn give_back(self: Arc<Self>) -> Result<()> {
        let result = self.lease.release().await;
        self.trace_release(&result);
        result
    }

    /// Tells what became of a release.
    pub(crate) fn trace_release(&self, result: &Result<()>) {
        match result {
            Ok(()) => trace::released(&self.name, self.lease.token()),
            Err(error) => trace::release_failed(&self.name, self.lease.token(), error),
        }
    }
}

impl Watched for Inner {
    fn ring(self: Arc<Self>, _now: Instant) -> Option<Instant> {
        if self.validity().has_ended() || self.check().is_err() {
            return None;
        }
        Some(self.until())
    }
}

impl HasSlot for Inner {
    fn slot(&self) -> &Slot {
        &self.slot
    }
}

impl fmt::Debug for Held {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Held")
            .field("name", self.name())
            .field("kind", &self.kind())
            .field("token", &self.token())
            .field("remaining", &self.remaining())
            .finish()
    }
}
