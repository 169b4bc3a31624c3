//! A lock that is held.

use std::{fmt, ops::Deref, sync::Arc, time::Duration};

use crate::{
    Held, Instant, Lease, LockName, Result, Term, alarm::Slot, held::Inner, locks::Client,
    owner::Owned,
};

/// A lock that is held until it is released, dropped, or lost. Derefs to [`Held`].
///
/// # Drop behaviour
///
/// Dropping a guard queues a release that runs in the background; the next waiter gets the lock as
/// soon as the store has it, not after the TTL. Only when the runtime is gone is the release left to
/// the TTL. Use [`release`](Self::release) to wait for the store's confirmation.
///
/// # What it does not promise
///
/// A process can be paused past its TTL and write late. Check [`is_valid`](Held::is_valid) before a
/// write, and let the resource check [`token`](Held::token): only that closes the gap.
#[must_use = "dropping the guard releases the lock"]
pub struct LockGuard(Held);

impl LockGuard {
    pub(crate) fn new(
        client: Arc<Client>,
        name: LockName,
        lease: Box<dyn Lease>,
        ttl: Duration,
        term: Term,
        cap: Instant,
    ) -> Self {
        let inner = Arc::new(Inner { client, name, lease, ttl, term, cap, slot: Slot::new() });
        inner.client.alarm.add(&inner, inner.until());
        Self(Held(inner))
    }

    /// A look at the lock that can be given away; it does not hold the lock.
    pub fn held(&self) -> Held {
        self.0.clone()
    }

    /// Releases the lock and waits until the store has confirmed.
    ///
    /// # Errors
    ///
    /// - [`Error::Lost`](crate::Error::Lost) if the lock was lost before: somebody else may have
    ///   held it meanwhile.
    /// - [`Error::Unavailable`](crate::Error::Unavailable) if the store did not confirm as long as
    ///   it mattered; the lock is then free after its TTL.
    ///
    /// # Cancel safety
    ///
    /// Dropping the future does not stop the release: it goes on in the background.
    pub async fn release(self) -> Result<()> {
        let inner = self.0.0.clone();
        inner.check()?;
        if !inner.lease.validity().release() {
            // Lost between the check and here.
            return inner.check();
        }
        inner.client.alarm.remove(&inner);
        let runtime = inner.client.runtime.clone();
        Owned::new(&runtime, inner.give_back(), || {}).await
    }
}

impl Deref for LockGuard {
    type Target = Held;

    fn deref(&self) -> &Held {
        &self.0
    }
}

impl Drop for LockGuard {
    fn drop(&mut self) {
        let inner = &self.0.0;
        if inner.lease.validity().release() {
            inner.client.alarm.remove(inner);
            inner.client.runtime.spawn(inner.clone().give_back());
        }
    }
}

impl fmt::Debug for LockGuard {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_tuple("LockGuard").field(&self.0).finish()
    }
}
