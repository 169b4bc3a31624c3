//! A connected store.

use std::{fmt, sync::Arc};

use tokio::runtime::Handle;

use crate::{
    Clock, DistributedLock, Entry, Guarantees, Lock, LockName, Result, alarm::Alarm, held::Inner,
};

/// A store of locks: what `connect` returns. Cheap to clone; all clones share one session.
///
/// Locks that are held keep the session alive. When the last clone and the last guard are gone, the
/// session ends in the background.
#[derive(Clone)]
pub struct Locks {
    client: Arc<Client>,
}

/// What all locks of one connection share.
pub(crate) struct Client {
    pub(crate) driver: Arc<dyn DistributedLock>,
    pub(crate) clock: Clock,
    pub(crate) alarm: Arc<Alarm<Inner>>,
    pub(crate) runtime: Handle,
}

impl Locks {
    /// Locks of a driver, for code that does not connect by URL.
    ///
    /// # Panics
    ///
    /// If it is called outside a tokio runtime.
    pub fn new(driver: impl DistributedLock) -> Self {
        let (clock, runtime) = (driver.clock(), Handle::current());
        let alarm = Alarm::start(clock, &runtime);
        Self { client: Arc::new(Client { driver: Arc::new(driver), clock, alarm, runtime }) }
    }

    /// An exclusive lock, to be configured and acquired. Nothing is sent yet.
    ///
    /// # Errors
    ///
    /// [`Error::InvalidName`](crate::Error::InvalidName) if the name is empty or longer than
    /// [`LockName::MAX_BYTES`].
    pub fn lock(&self, name: impl AsRef<str>) -> Result<Lock> {
        Ok(Lock::new(self.client.clone(), LockName::new(name)?))
    }

    /// Who holds the lock and who waits for it, the holder first; empty if it is free.
    ///
    /// # Errors
    ///
    /// [`Error::InvalidName`](crate::Error::InvalidName), and what the store answers.
    pub async fn inspect(&self, name: impl AsRef<str>) -> Result<Vec<Entry>> {
        self.client.driver.inspect(&LockName::new(name)?).await
    }

    /// What the store promises.
    pub fn guarantees(&self) -> &Guarantees {
        self.client.driver.guarantees()
    }

    /// The driver itself, for tests of drivers.
    pub fn driver(&self) -> &Arc<dyn DistributedLock> {
        &self.client.driver
    }
}

impl fmt::Debug for Locks {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_tuple("Locks").field(&self.client.driver).finish()
    }
}
