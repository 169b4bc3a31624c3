//! Several locks that are held together.

use std::{fmt, future::Future, ops::Deref, time::Duration};

use crate::{BoxFuture, Error, HeldSet, LockGuard, Result};

/// Several locks that are held together. Derefs to [`HeldSet`]. Dropping it releases all of them in
/// the background, as a [`LockGuard`] does.
#[must_use = "dropping the guard releases the locks"]
pub struct LockSetGuard {
    guards: Vec<LockGuard>,
    held: HeldSet,
}

impl LockSetGuard {
    /// The guards of some locks, in the order of their names.
    pub(super) fn new(guards: Vec<LockGuard>) -> Self {
        Self { held: HeldSet::new(guards.iter().map(LockGuard::held)), guards }
    }

    /// The guard of one lock more.
    pub(super) fn push(&mut self, guard: LockGuard) {
        self.guards.push(guard);
        self.held = HeldSet::new(self.guards.iter().map(LockGuard::held));
    }

    /// A view of the locks that can be passed on; it does not hold them.
    pub fn held(&self) -> HeldSet {
        self.held.clone()
    }

    /// Releases all of the locks and waits until the store has confirmed.
    ///
    /// # Errors
    ///
    /// Same as [`LockGuard::release`], for the first that failed; the others are released all the
    /// same.
    ///
    /// # Cancel safety
    ///
    /// Same as [`LockGuard::release`].
    pub fn release(self) -> BoxFuture<'static, Result<()>> {
        Box::pin(async move {
            let releases = self.guards.into_iter().map(LockGuard::release);
            futures_util::future::join_all(releases).await.into_iter().collect()
        })
    }

    /// The guard of a set of one name.
    #[cfg(feature = "properties")]
    pub(crate) fn only(mut self) -> LockGuard {
        // A set is never empty.
        self.guards.pop().expect("a set has a name")
    }

    /// Gives back the locks that the caller of an acquire has not collected. Returns the first
    /// error.
    pub(super) fn not_collected(self) -> Result<Self> {
        let told = self.guards.into_iter().map(|guard| Err(guard.not_collected()));
        // Each is given back, also after an error.
        told.fold(Ok(Self::new(Vec::new())), Result::and)
    }

    /// Returns the error that ends the acquire. After a drain it comes when the locks are given back:
    /// the process may end with it.
    pub(super) async fn given_back(self, error: Error) -> Error {
        if error.is_closed() {
            // A failure is traced.
            let _ = self.release().await;
        }
        error
    }

    /// Holds all of the locks at least for this time after the last grant.
    pub(super) fn at_least(&self, time: Duration) {
        if let Some(last) = self.guards.iter().map(LockGuard::granted).max() {
            self.guards.iter().for_each(|guard| guard.at_least(last + time));
        }
    }

    /// Does the work unless one of the locks is lost meanwhile.
    pub(super) async fn while_valid<T>(&self, work: impl Future<Output = T>) -> Result<T> {
        if self.guards.is_empty() {
            return Ok(work.await);
        }
        tokio::select! {
            biased;
            (name, reason) = self.lost() => Err(Error::Lost { name, reason }),
            done = work => Ok(done),
        }
    }
}

impl Deref for LockSetGuard {
    type Target = HeldSet;

    fn deref(&self) -> &HeldSet {
        &self.held
    }
}

impl fmt::Debug for LockSetGuard {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_tuple("LockSetGuard").field(&self.guards).finish()
    }
}
