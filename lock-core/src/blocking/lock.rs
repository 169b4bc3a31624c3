//! A lock with its options.

use super::{LockGuard, runtime::On};
use crate::{Owner, Result, api::options::options};

/// A lock with its options, exclusive or shared, like [`crate::Lock`]. Cheap to clone.
#[derive(Clone, Debug)]
#[must_use = "a lock does nothing until it is acquired"]
pub struct Lock(pub(super) On<crate::Lock>);

impl Lock {
    options!(|self| self.0.it);

    /// Acquires as this owner, like [`crate::Lock::owner`]. A thread alone is not an owner: if it
    /// acquires twice without one, it waits for itself.
    pub fn owner(self, owner: &Owner) -> Self {
        Self(self.0.connected.on(self.0.it.owner(owner)))
    }

    /// Waits for the lock, like [`crate::Lock::acquire`].
    pub fn acquire(&self) -> Result<LockGuard> {
        self.0.connected.get("acquire", self.0.it.acquire()).map(LockGuard)
    }

    /// Takes the lock if it is free and no client waits for it, like [`crate::Lock::try_acquire`].
    pub fn try_acquire(&self) -> Result<Option<LockGuard>> {
        let guard = self.0.connected.wait("try_acquire", self.0.it.try_acquire())?;
        Ok(guard.map(|guard| LockGuard(self.0.connected.on(Some(guard)))))
    }
}
