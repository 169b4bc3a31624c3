//! A connected store.

use std::{sync::Arc, time::Duration};

use tokio::runtime::Runtime;
use uuid::Uuid;

use super::{Election, Lock, LockGuard, LockSet, Semaphore, runtime::Connected};
use crate::{
    ConnectionState, DistributedLock, Entry, FencingToken, Guarantees, LockName, Mark, Result,
    Ticket, TokenFloor,
};

/// A store of locks, like [`crate::Locks`]. Cheap to clone.
///
/// When the last clone and the last guard are gone, the session is closed; that waits for the store
/// for at most 1 s.
#[derive(Clone, Debug)]
pub struct Locks(pub(super) Arc<Connected>);

impl Locks {
    /// Locks of the driver that `driver` makes, in the connection's own runtime.
    ///
    /// ```no_run
    /// # use lock_core as distlock;
    /// # fn example<D: lock_core::DistributedLock>(client: fn() -> D) -> lock_core::Result<()> {
    /// use distlock::blocking::Locks;
    ///
    /// let locks = Locks::new(|| client())?; // say: || MemoryStore::new().client()
    /// # Ok(()) }
    /// ```
    ///
    /// # Errors
    ///
    /// [`Error::Unsupported`](crate::Error::Unsupported) inside an async runtime, like every
    /// function of this type that sends a request to the store.
    pub fn new<D: DistributedLock>(driver: impl FnOnce() -> D) -> Result<Self> {
        Self::open(async { Ok(crate::Locks::new(driver())) })
    }

    /// Connects: by a [`Connect`](crate::Connect), or by any other future that makes
    /// [`crate::Locks`], such as an async block that connects a driver.
    ///
    /// # Errors
    ///
    /// The future's errors, and the ones of [`new`](Self::new).
    pub fn open(connect: impl IntoFuture<Output = Result<crate::Locks>>) -> Result<Self> {
        Ok(Self(Arc::new(Connected::open(connect)?)))
    }

    /// Connects in the caller's runtime: a `Runtime`, or an `Arc` of one that is used elsewhere,
    /// too. It ends with its last owner.
    ///
    /// A current-thread runtime works only while a call waits, so nothing is renewed between two
    /// calls. It is for tests, with locks in memory and a paused clock: then no time passes between
    /// two calls, and while a call waits, time passes at once. So a TTL or the limit of a wait
    /// costs a test no time. Such a connection is for one thread: while it waits, time passes for
    /// the requests of other threads, too.
    ///
    /// ```no_run
    /// # use lock_core as distlock;
    /// # use std::{sync::Arc, time::Duration};
    /// # fn client() -> std::sync::Arc<dyn lock_core::DistributedLock> { unreachable!() }
    /// # fn paused() -> tokio::runtime::Runtime { unreachable!() }
    /// use distlock::blocking;
    ///
    /// // new_current_thread().enable_time().start_paused(true).build()
    /// let clock = Arc::new(paused());
    /// let connect = async { Ok(distlock::Locks::of(client())) };
    /// let locks = blocking::Locks::open_in(clock.clone(), connect)?;
    /// let guard = locks.lock("orders/42")?.fixed_term().acquire()?;
    /// clock.block_on(async { tokio::time::sleep(Duration::from_secs(15)).await });
    /// assert!(!guard.is_valid());
    /// # Ok::<(), lock_core::Error>(())
    /// ```
    ///
    /// # Errors
    ///
    /// Same as [`open`](Self::open); [`Error::Unsupported`](crate::Error::Unsupported) for a
    /// current-thread runtime and a store outside this process.
    ///
    /// # Panics
    ///
    /// If the runtime has no timers (`enable_time`), here or at the first call.
    pub fn open_in(
        runtime: impl Into<Arc<Runtime>>,
        connect: impl IntoFuture<Output = Result<crate::Locks>>,
    ) -> Result<Self> {
        Ok(Self(Arc::new(Connected::open_in(runtime.into(), connect)?)))
    }

    /// Like [`crate::Locks::lock`].
    pub fn lock(&self, name: impl AsRef<str>) -> Result<Lock> {
        Ok(Lock(self.0.on(self.0.locks.lock(name)?)))
    }

    /// Like [`crate::Locks::shared`].
    pub fn shared(&self, name: impl AsRef<str>) -> Result<Lock> {
        Ok(Lock(self.0.on(self.0.locks.shared(name)?)))
    }

    /// Like [`crate::Locks::semaphore`].
    pub fn semaphore(&self, name: impl AsRef<str>, permits: u32) -> Result<Semaphore> {
        Ok(Semaphore(self.0.on(self.0.locks.semaphore(name, permits)?)))
    }

    /// Like [`crate::Locks::all`].
    pub fn all(&self, names: impl IntoIterator<Item = impl AsRef<str>>) -> Result<LockSet> {
        Ok(LockSet(self.0.on(self.0.locks.all(names)?)))
    }

    /// Like [`crate::Locks::election`].
    pub fn election(&self, name: impl AsRef<str>) -> Result<Election> {
        Ok(Election(self.0.on(self.0.locks.election(name)?)))
    }

    /// Like [`crate::Locks::adopt`].
    pub fn adopt(&self, ticket: &Ticket) -> Result<LockGuard> {
        self.0.get("adopt", self.0.locks.adopt(ticket)).map(LockGuard)
    }

    /// Like [`crate::Locks::inspect`].
    pub fn inspect(&self, name: impl AsRef<str>) -> Result<Vec<Entry>> {
        self.0.wait("inspect", self.0.locks.inspect(name))
    }

    /// Like [`crate::Locks::names`].
    pub fn names(&self, prefix: impl AsRef<str>) -> Result<Vec<LockName>> {
        self.0.wait("names", self.0.locks.names(prefix))
    }

    /// Like [`crate::Locks::revoke`].
    pub fn revoke(&self, name: impl AsRef<str>, attempt: Uuid) -> Result<bool> {
        self.0.wait("revoke", self.0.locks.revoke(name, attempt))
    }

    /// Like [`crate::Locks::mark`]. To do work once per period, ask for [`LockGuard::mark`] after
    /// the grant, and call [`LockGuard::mark_done`] before the release.
    pub fn mark(&self, name: impl AsRef<str>) -> Result<Option<Mark>> {
        self.0.wait("mark", self.0.locks.mark(name))
    }

    /// Like [`crate::Locks::marks`].
    pub fn marks(&self, prefix: impl AsRef<str>) -> Result<Vec<(LockName, Mark)>> {
        self.0.wait("marks", self.0.locks.marks(prefix))
    }

    /// Like [`crate::Locks::clear_mark`].
    pub fn clear_mark(&self, name: impl AsRef<str>) -> Result<bool> {
        self.0.wait("clear the mark", self.0.locks.clear_mark(name))
    }

    /// Like [`crate::Locks::ping`].
    pub fn ping(&self) -> Result<Duration> {
        self.0.wait("ping", self.0.locks.ping())
    }

    /// Like [`crate::Locks::connection`].
    pub fn connection(&self) -> ConnectionState {
        self.0.locks.connection()
    }

    /// Like [`crate::Locks::drain`].
    pub fn drain(&self, limit: Duration) -> Result<usize> {
        self.0.wait("drain", self.0.locks.drain(limit))
    }

    /// Like [`crate::Locks::token_floor`].
    pub fn token_floor(&self) -> Result<TokenFloor> {
        self.0.wait("token floor", self.0.locks.token_floor())
    }

    /// Like [`crate::Locks::raise_token_floor`].
    pub fn raise_token_floor(&self, above: FencingToken) -> Result<TokenFloor> {
        self.0.wait("raise the token floor", self.0.locks.raise_token_floor(above))
    }

    /// Like [`crate::Locks::close`].
    pub fn close(&self) -> Result<()> {
        self.0.wait("close", self.0.locks.close())
    }

    /// Returns the promises of the store.
    pub fn guarantees(&self) -> &Guarantees {
        self.0.locks.guarantees()
    }
}
