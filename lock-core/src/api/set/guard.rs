//! Several locks that are held together.

use std::{fmt, future::Future, time::Duration};

use crate::{
    BoxFuture, Error, FencingToken, Held, HeldSet, LockGuard, LockName, LossReason, Result,
};

/// Several locks that are held together. Dropping it releases all of them in the background, as a
/// [`LockGuard`] does.
#[must_use = "dropping the guard releases the locks"]
pub struct LockSetGuard {
    pub(super) guards: Vec<LockGuard>,
}

impl LockSetGuard {
    /// Each name with its fencing token, in the order of the names.
    pub fn tokens(&self) -> impl Iterator<Item = (&LockName, FencingToken)> {
        self.guards.iter().map(|guard| (guard.name(), guard.token()))
    }

    /// One of the locks: its token, its renewal by hand, its condition for guarded writes; `None`
    /// if the name is not in the set.
    pub fn get(&self, name: impl AsRef<str>) -> Option<&Held> {
        let name = name.as_ref();
        self.guards.iter().find(|guard| guard.name().as_str() == name).map(|guard| &**guard)
    }

    /// A view of the locks that can be passed on; it does not hold them.
    pub fn held(&self) -> HeldSet {
        HeldSet::new(self.guards.iter().map(LockGuard::held))
    }

    /// Whether all of the locks are still held, like [`Held::is_valid`](crate::Held::is_valid).
    pub fn is_valid(&self) -> bool {
        self.guards.iter().all(|guard| guard.is_valid())
    }

    /// How long all of them are still held without another renewal.
    pub fn remaining(&self) -> Duration {
        self.guards.iter().map(|guard| guard.remaining()).min().unwrap_or_default()
    }

    /// Waits until one of the locks is lost, and returns its name and the reason, like
    /// [`Held::lost`](crate::Held::lost).
    ///
    /// # Cancel safety
    ///
    /// Dropping the future ends the wait and nothing else.
    pub fn lost(&self) -> impl Future<Output = (LockName, LossReason)> + Send + use<> {
        self.held().lost()
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
    pub(super) fn not_collected(self) -> Result<()> {
        let told = self.guards.into_iter().map(|guard| Err(guard.not_collected()));
        // Each is given back, also after an error.
        told.fold(Ok(()), Result::and)
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

    /// The loss of the first lock that is not held any more.
    pub(super) fn check(&self) -> Result<()> {
        self.guards.iter().try_for_each(|guard| guard.check())
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

impl fmt::Debug for LockSetGuard {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_tuple("LockSetGuard").field(&self.guards).finish()
    }
}
