//! A lock with its options.

use std::sync::Arc;

use super::{LockGuard, runtime::Connected};
use crate::{Owner, Result, api::options::options};

/// A lock with its options, exclusive or shared, like [`crate::Lock`]. Cheap to clone.
#[derive(Clone, Debug)]
#[must_use = "a lock does nothing until it is acquired"]
pub struct Lock {
    connected: Arc<Connected>,
    lock: crate::Lock,
}

impl Lock {
    pub(super) fn new(connected: &Arc<Connected>, lock: crate::Lock) -> Self {
        Self { connected: connected.clone(), lock }
    }

    options!(|self| self.lock);

    /// Acquires as this owner, like [`crate::Lock::owner`]. A thread alone is not an owner: if it
    /// acquires twice without one, it waits for itself.
    pub fn owner(self, owner: &Owner) -> Self {
        Self { lock: self.lock.owner(owner), ..self }
    }

    /// Waits for the lock, like [`crate::Lock::acquire`].
    pub fn acquire(&self) -> Result<LockGuard> {
        let guard = self.connected.wait("acquire", self.lock.acquire())?;
        Ok(LockGuard::new(&self.connected, guard))
    }

    /// Takes the lock if it is free and no client waits for it, like [`crate::Lock::try_acquire`].
    pub fn try_acquire(&self) -> Result<Option<LockGuard>> {
        let guard = self.connected.wait("try_acquire", self.lock.try_acquire())?;
        Ok(guard.map(|guard| LockGuard::new(&self.connected, guard)))
    }
}
