//! Permits.

use super::{LockGuard, runtime::On};
use crate::{Result, api::options::options};

/// A semaphore with its options, like [`crate::Semaphore`]. Cheap to clone.
#[derive(Clone, Debug)]
#[must_use = "a semaphore does nothing until it is acquired"]
pub struct Semaphore(pub(super) On<crate::Semaphore>);

impl Semaphore {
    options!(|self| self.0.it.lock);

    /// Waits for one permit, like [`crate::Semaphore::acquire`].
    pub fn acquire(&self) -> Result<LockGuard> {
        self.acquire_many(1)
    }

    /// Waits for `n` permits at once, like [`crate::Semaphore::acquire_many`].
    pub fn acquire_many(&self, n: u32) -> Result<LockGuard> {
        self.0.connected.get("acquire", self.0.it.acquire_many(n)).map(LockGuard)
    }

    /// Takes one permit if there is one, like [`crate::Semaphore::try_acquire`].
    pub fn try_acquire(&self) -> Result<Option<LockGuard>> {
        self.try_acquire_many(1)
    }

    /// Takes `n` permits at once if there are so many, like [`crate::Semaphore::try_acquire_many`].
    pub fn try_acquire_many(&self, n: u32) -> Result<Option<LockGuard>> {
        let guard = self.0.connected.wait("try_acquire", self.0.it.try_acquire_many(n))?;
        Ok(guard.map(|guard| LockGuard(self.0.connected.on(Some(guard)))))
    }
}
