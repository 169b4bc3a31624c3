//! A view of a lock that is held.

use std::{
    any::Any,
    fmt,
    future::Future,
    sync::{Arc, Mutex, OnceLock},
    time::Duration,
};

use crate::{
    Facts, FencingToken, Instant, Kind, Lease, LockName, LossReason, Request, Result, Term,
    Validity,
    api::client::{Client, Hold},
    driver::validity::{self, Watcher},
    machine::{alarm::Slot, conversion::HeldAs, finish::Finishing, runtime::HomeRuntime},
};

/// A view of a lock that is held: its token, its deadline, its loss. Cheap to clone; it does not
/// hold the lock.
///
/// A [`LockGuard`](crate::LockGuard) derefs to this, and [`Lock::run`](crate::Lock::run) passes it
/// to the work.
#[derive(Clone)]
pub struct Held(pub(crate) Arc<Hold>);

impl Held {
    /// A new grant of a request, whose deadline is watched from now on. It ends after `longest`.
    pub(crate) fn begin(
        client: Arc<Client>,
        request: &Request,
        lease: Box<dyn Lease>,
        longest: Option<Duration>,
    ) -> Self {
        let granted = client.home.clock.now();
        let hold = Arc::new(Hold {
            client,
            name: request.name.clone(),
            held_as: HeldAs::new(request.kind),
            lease,
            ttl: request.ttl,
            term: request.term,
            granted,
            least: OnceLock::new(),
            cap: longest.map_or(Instant::NEVER, |longest| granted + longest),
            slot: Slot::default(),
            later: Mutex::default(),
        });
        hold.lease.validity().meter(hold.client.driver.guarantees().store, request);
        // First: the alarm is set to a deadline that no shortening passes by.
        let watcher: Arc<dyn Watcher> = hold.clone();
        hold.lease.validity().watch(Arc::downgrade(&watcher));
        hold.set_alarm();
        Self(hold)
    }

    /// The lock's name.
    pub fn name(&self) -> &LockName {
        &self.0.name
    }

    /// The kind of the hold: exclusive, shared, or permits.
    pub fn kind(&self) -> Kind {
        self.0.held_as.kind()
    }

    /// The fencing token of this grant: give it to the resource that the lock protects.
    pub fn token(&self) -> FencingToken {
        self.0.lease.token()
    }

    /// Whether the lock is still held, as this process computes it: not released, not lost, and its
    /// deadline not passed. It reads the clock, so it is right as the first call after a pause.
    pub fn is_valid(&self) -> bool {
        !self.remaining().is_zero()
    }

    /// How long the lock is still held without another renewal; zero if it is not held. It excludes
    /// the margin before another client can get the lock.
    pub fn remaining(&self) -> Duration {
        let validity = self.0.lease.validity();
        let left = match validity.has_ended() {
            true => Duration::ZERO,
            false => self.0.until().since(self.0.client.home.now()),
        };
        if left.is_zero() {
            validity.look().end();
        }
        left
    }

    /// The name of the store that granted it, as in
    /// [`Guarantees::store`](crate::Guarantees::store).
    pub fn store(&self) -> &'static str {
        self.0.client.driver.guarantees().store
    }

    /// The facts that the store reported about itself when it made the grant's entry: etcd's
    /// revision, cluster, member and term. It sends no request.
    pub fn facts(&self) -> Facts {
        self.0.lease.facts()
    }

    /// The store's own lease, if this driver granted the lock; `None` for another store. A driver's
    /// lease has the store's own condition for a write that only the holder may do. With it the
    /// store itself refuses all other clients.
    pub fn lease_as<L: Lease>(&self) -> Option<&L> {
        let lease: &dyn Any = &*self.0.lease;
        lease.downcast_ref()
    }

    pub(crate) fn check(&self) -> Result<()> {
        self.0.check()
    }

    /// Waits until the lock is lost, and returns the reason. Ready before another client can be
    /// granted the lock, but for the [overlaps](crate::Overlap) of the store, such as a revoke: it
    /// is ready then when the store tells it, or a renewal finds it. Never ready after a release.
    /// The future borrows nothing. It is also ready when the runtime in which the store was
    /// connected has ended ([`LossReason::RuntimeEnded`]): the lock is not renewed from then on, and
    /// only [`is_valid`](Self::is_valid) shows how long it is still held.
    ///
    /// # Cancel safety
    ///
    /// Dropping the future ends the wait and nothing else.
    pub fn lost(&self) -> impl Future<Output = LossReason> + Send + use<> {
        let (validity, ended) = (self.0.lease.validity().clone(), self.0.client.home.ended());
        async move {
            let reason = tokio::select! {
                biased;
                reason = validity.lost() => reason,
                () = ended.cancelled() => match validity.has_ended() {
                    // Released: never ready.
                    true => validity.lost().await,
                    false => LossReason::RuntimeEnded,
                },
            };
            validity.look().end();
            reason
        }
    }

    /// Whether the store does not confirm renewals any more, so that the lock may soon be lost: five
    /// eighths of its TTL are over without one. [`remaining`](Self::remaining) is the time that is
    /// left. False again once a renewal is confirmed, and after the end. A lock with a fixed term,
    /// which nothing renews, is never at risk.
    pub fn is_at_risk(&self) -> bool {
        let hold = &self.0;
        at_risk(hold.lease.validity(), &hold.client.home, hold.ttl, hold.term).is_some()
    }

    /// Waits until the lock [is at risk](Self::is_at_risk), and returns the time that is left: for
    /// work that can be brought to a good end, or a warning. Usually the store answers again, and the
    /// lock is not lost. Never ready after the end of the lock. The future borrows nothing.
    ///
    /// ```no_run
    /// # async fn example(guard: lock_core::LockGuard, step: impl Future<Output = ()>) {
    /// tokio::select! {
    ///     () = step => {}
    ///     left = guard.at_risk() => println!("no new step is begun: {left:?} are left"),
    /// }
    /// # }
    /// ```
    ///
    /// # Cancel safety
    ///
    /// Dropping the future ends the wait and nothing else.
    pub fn at_risk(&self) -> impl Future<Output = Duration> + Send + use<> {
        let (validity, home) = (self.0.lease.validity().clone(), self.0.client.home.clone());
        let (ttl, term) = (self.0.ttl, self.0.term);
        async move {
            while term == Term::Renewed && !validity.has_ended() {
                if let Some(left) = at_risk(&validity, &home, ttl, term) {
                    return left;
                }
                let left = validity.until().since(home.now());
                let pause = left.saturating_sub(validity::at_risk(ttl));
                // The present runtime's own reading: the two may have different virtual clocks.
                home.clock.sleep_until(home.clock.now() + pause).await;
            }
            drop((validity, home));
            std::future::pending().await
        }
    }

    /// Renews the lock for one TTL now. A lock with a fixed term needs this to go on; other locks
    /// are renewed by the watchdog. The maximum hold time still counts from the grant.
    ///
    /// It also asks the store whether the lock is still held. If a fenced write was refused and
    /// this returns `Ok` for an exclusive lock, this store has no later holder: the resource has
    /// seen a greater token of another store, or of the time before a restore. Find clients that
    /// still use the other store, and stop them. The [token
    /// floor](crate::Locks::raise_token_floor) comes last: raising it ends every holder below it.
    ///
    /// # Errors
    ///
    /// [`Error::Lost`](crate::Error::Lost) if the lock is not held any more,
    /// [`Error::Unavailable`](crate::Error::Unavailable) if the store did not answer,
    /// [`Error::Closed`](crate::Error::Closed) if the runtime that connected has ended.
    ///
    /// # Cancel safety
    ///
    /// Dropping the future does not stop a renewal that was sent.
    pub async fn renew(&self) -> Result<()> {
        self.0.check_all()?;
        self.renewal().await?;
        self.0.check()
    }

    /// Not `async`: so the work is compiled in this crate alone.
    fn renewal(&self) -> Finishing<()> {
        let hold = self.0.clone();
        let renewal =
            async move { hold.lease.renew().await.map_err(|error| hold.failed("renew", error)) };
        Finishing::new(&self.0.client.home, renewal)
    }
}

/// The time that is left of a grant whose renewals fail.
fn at_risk(validity: &Validity, home: &HomeRuntime, ttl: Duration, term: Term) -> Option<Duration> {
    let left = validity.until().since(home.now());
    let risky = term == Term::Renewed && !validity.has_ended() && left <= validity::at_risk(ttl);
    risky.then_some(left)
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
