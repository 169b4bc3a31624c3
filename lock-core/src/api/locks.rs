//! A connected store.

use std::{panic::Location, sync::Arc};

use crate::{
    DistributedLock, Election, Guarantees, Kind, Lock, LockName, LockSet, Result, Semaphore,
    api::client::Client, driver::trace,
};

#[allow(unused_imports, reason = "for the documentation")]
use crate::Error;

/// A store of locks: what `connect` returns. Cheap to clone; all clones share one session.
///
/// Locks that are held keep the session alive. When the last clone and the last guard are gone, the
/// session ends in the background.
///
/// # Runtimes
///
/// A connection lives in the tokio runtime in which it was made: the renewals run there. Calls may
/// come from any runtime; they wait until the connection's runtime has done the work. So that
/// runtime must exist and run. A current-thread runtime runs only within its `block_on`.
///
/// After that runtime has ended, every call returns [`Error::Closed`] at once, with
/// [`ClosedBy::Runtime`](crate::ClosedBy::Runtime) naming the runtime, and
/// [`Held::lost`](crate::Held::lost) is ready. Held locks are free after their TTL. So a connection
/// in a `static` is for a program with one runtime. Each `#[tokio::test]` has its own runtime and
/// connects for itself. Where runtimes come and go, connect in a runtime that lives as long as the
/// connection, or use [`blocking`](crate::blocking), which has a runtime of its own.
#[derive(Clone, Debug)]
pub struct Locks {
    pub(super) client: Arc<Client>,
}

impl Locks {
    /// Locks of a driver, for code that does not connect by URL. Call it in the runtime in which
    /// the driver was connected: errors name that runtime, and its end is noticed.
    ///
    /// # Panics
    ///
    /// If it is called outside a tokio runtime.
    #[track_caller]
    pub fn new(driver: impl DistributedLock) -> Self {
        Self::of(Arc::new(driver))
    }

    /// Same as [`new`](Self::new), for a driver that others use as well.
    ///
    /// # Panics
    ///
    /// If it is called outside a tokio runtime.
    #[track_caller]
    pub fn of(driver: Arc<dyn DistributedLock>) -> Self {
        Self::connected(driver, Location::caller(), None)
    }

    /// Locks of a driver that `caller` connected, with the addresses of its servers.
    pub(crate) fn connected(
        driver: Arc<dyn DistributedLock>,
        caller: &'static Location<'static>,
        servers: Option<String>,
    ) -> Self {
        let guarantees = driver.guarantees();
        guarantees.cautions.iter().for_each(|why| trace::caution(guarantees.store, why));
        Self { client: Arc::new(Client::new(driver, caller, servers)) }
    }

    /// An exclusive lock, to be configured and acquired. Beside [`shared`](Self::shared) locks of
    /// the same name it is the writer's lock. Nothing is sent yet.
    ///
    /// # Errors
    ///
    /// [`Error::InvalidName`] if the name is empty or longer than
    /// [`LockName::MAX_BYTES`].
    pub fn lock(&self, name: impl AsRef<str>) -> Result<Lock> {
        Lock::new(self.client.clone(), LockName::new(name)?, Kind::Exclusive)
    }

    /// A shared lock: any number of holders together, but never together with an exclusive holder
    /// of the same name. First come, first served: a reader waits behind a writer that came before
    /// it, so neither side starves. Readers that follow each other enter together.
    ///
    /// # Errors
    ///
    /// Same as [`lock`](Self::lock), and [`Error::Unsupported`] if the store has no shared locks.
    pub fn shared(&self, name: impl AsRef<str>) -> Result<Lock> {
        Lock::new(self.client.clone(), LockName::new(name)?, Kind::Shared)
    }

    /// A semaphore: at most this many permits are held at a time. All users of the name must give
    /// the same number. Another number is an error of a try; a waiter waits until those who use
    /// another one are gone, in no order with others, and emits the event `permits_differ` of
    /// [`trace`](crate::trace). So a rolling deploy can change the number.
    ///
    /// # Errors
    ///
    /// Same as [`shared`](Self::shared), and [`Error::InvalidOption`] for no permits.
    pub fn semaphore(&self, name: impl AsRef<str>, permits: u32) -> Result<Semaphore> {
        Semaphore::new(self.client.clone(), LockName::new(name)?, permits)
    }

    /// Several exclusive locks, to be acquired together: all or nothing. The set's
    /// [`shared`](LockSet::shared) and [`and_shared`](LockSet::and_shared) are for shared ones.
    ///
    /// # Errors
    ///
    /// Same as [`lock`](Self::lock), and [`Error::InvalidName`] for no name at all.
    pub fn all(&self, names: impl IntoIterator<Item = impl AsRef<str>>) -> Result<LockSet> {
        LockSet::new(self.client.clone(), names)
    }

    /// An election: at most one candidate leads at a time. Every client can see the leader and the
    /// value that it publishes.
    ///
    /// # Errors
    ///
    /// Same as [`shared`](Self::shared).
    pub fn election(&self, name: impl AsRef<str>) -> Result<Election> {
        Election::new(self.client.clone(), LockName::new(name)?)
    }

    /// Returns the promises of the store.
    pub fn guarantees(&self) -> &Guarantees {
        self.client.driver.guarantees()
    }

    /// The driver itself, for tests of drivers.
    pub fn driver(&self) -> &Arc<dyn DistributedLock> {
        &self.client.driver
    }
}
