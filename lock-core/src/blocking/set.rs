//! Several locks at once.

use std::sync::Arc;

use super::{LockSetGuard, runtime::Connected};
use crate::{Result, api::options::options};

/// Several locks that are acquired together, like [`crate::LockSet`]. Cheap to clone.
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

    /// The same names as shared locks, like [`crate::LockSet::shared`].
    pub fn shared(self) -> Result<Self> {
        Ok(Self { set: self.set.shared()?, ..self })
    }

    /// Adds names as shared locks, like [`crate::LockSet::and_shared`].
    pub fn and_shared(self, names: impl IntoIterator<Item = impl AsRef<str>>) -> Result<Self> {
        Ok(Self { set: self.set.and_shared(names)?, ..self })
    }

    /// Waits until it has all of the locks, like [`crate::LockSet::acquire`].
    pub fn acquire(&self) -> Result<LockSetGuard> {
        let guard = self.connected.wait("acquire", self.set.acquire())?;
        Ok(LockSetGuard::new(&self.connected, guard))
    }

    /// Takes all of the locks if all are free, like [`crate::LockSet::try_acquire`].
    pub fn try_acquire(&self) -> Result<Option<LockSetGuard>> {
        let guard = self.connected.wait("try_acquire", self.set.try_acquire())?;
        Ok(guard.map(|guard| LockSetGuard::new(&self.connected, guard)))
    }
}
