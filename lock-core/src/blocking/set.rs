//! Several locks at once.

use super::{LockSetGuard, runtime::On};
use crate::{Result, api::options::options};

/// Several locks that are acquired together, like [`crate::LockSet`]. Cheap to clone.
#[derive(Clone, Debug)]
#[must_use = "locks do nothing until they are acquired"]
pub struct LockSet(pub(super) On<crate::LockSet>);

impl LockSet {
    options!(|self| self.0.it.lock);

    /// The same names as shared locks, like [`crate::LockSet::shared`].
    pub fn shared(self) -> Result<Self> {
        Ok(Self(self.0.connected.on(self.0.it.shared()?)))
    }

    /// Adds names as shared locks, like [`crate::LockSet::and_shared`].
    pub fn and_shared(self, names: impl IntoIterator<Item = impl AsRef<str>>) -> Result<Self> {
        Ok(Self(self.0.connected.on(self.0.it.and_shared(names)?)))
    }

    /// Waits until it has all of the locks, like [`crate::LockSet::acquire`].
    pub fn acquire(&self) -> Result<LockSetGuard> {
        self.0.connected.get("acquire", self.0.it.acquire()).map(LockSetGuard)
    }

    /// Takes all of the locks if all are free, like [`crate::LockSet::try_acquire`].
    pub fn try_acquire(&self) -> Result<Option<LockSetGuard>> {
        let guard = self.0.connected.wait("try_acquire", self.0.it.try_acquire())?;
        Ok(guard.map(|guard| LockSetGuard(self.0.connected.on(Some(guard)))))
    }
}
