//! Several locks at once.

use std::sync::Arc;

use super::{LockSetGuard, runtime::Connected};
use crate::{Result, options::options};

/// Several exclusive locks that are acquired together, as [`crate::LockSet`]. Cheap to clone.
#[derive(Clone, Debug)]
#[must_use = "locks do nothing until they are acquired"]
pub struct LockSet {
    connected: Arc<Connected>,
    set: crate::LockSet,
}

impl LockSet {
    pub(super) fn new(connected: &Arc<Connected>, set: crate::LockSet) -> Self {
        Self { connected: connected.clone(), set }
    }

    options!(|self| self.set.lock);

    /// Waits until it has all of the locks, as [`crate::LockSet::acquire`].
    ///
    /// # Errors
    ///
    /// Those, and [`Error::Unsupported`](crate::Error::Unsupported) inside an async runtime.
    pub fn acquire(&self) -> Result<LockSetGuard> {
        let guard = self.connected.wait("acquire", self.set.acquire())?;
        Ok(LockSetGuard::new(&self.connected, guard))
    }

    /// Takes all of the locks if all are free, as [`crate::LockSet::try_acquire`].
    ///
    /// # Errors
    ///
    /// As [`acquire`](Self::acquire).
    pub fn try_acquire(&self) -> Result<Option<LockSetGuard>> {
        let guard = self.connected.wait("try_acquire", self.set.try_acquire())?;
        Ok(guard.map(|guard| LockSetGuard::new(&self.connected, guard)))
    }
}
