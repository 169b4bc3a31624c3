//! Permits.

use std::sync::Arc;

use super::{LockGuard, runtime::Connected};
use crate::{Result, api::options::options};

/// A semaphore with its options, like [`crate::Semaphore`]. Cheap to clone.
#[derive(Clone, Debug)]
#[must_use = "a semaphore does nothing until it is acquired"]
pub struct Semaphore {
    connected: Arc<Connected>,
    semaphore: crate::Semaphore,
}

impl Semaphore {
    pub(super) fn new(connected: &Arc<Connected>, semaphore: crate::Semaphore) -> Self {
        Self { connected: connected.clone(), semaphore }
    }

    options!(|self| self.semaphore.lock);

    /// Waits for one permit, like [`crate::Semaphore::acquire`].
    pub fn acquire(&self) -> Result<LockGuard> {
        self.acquire_many(1)
    }

    /// Waits for `n` permits at once, like [`crate::Semaphore::acquire_many`].
    pub fn acquire_many(&self, n: u32) -> Result<LockGuard> {
        let guard = self.connected.wait("acquire", self.semaphore.acquire_many(n))?;
        Ok(LockGuard::new(&self.connected, guard))
    }

    /// Takes one permit if there is one, like [`crate::Semaphore::try_acquire`].
    pub fn try_acquire(&self) -> Result<Option<LockGuard>> {
        self.try_acquire_many(1)
    }

    /// Takes `n` permits at once if there are so many, like [`crate::Semaphore::try_acquire_many`].
    pub fn try_acquire_many(&self, n: u32) -> Result<Option<LockGuard>> {
        let guard = self.connected.wait("try_acquire", self.semaphore.try_acquire_many(n))?;
        Ok(guard.map(|guard| LockGuard::new(&self.connected, guard)))
    }
}
