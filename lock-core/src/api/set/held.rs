//! A view of several locks that are held together.

use std::{future::Future, sync::Arc, time::Duration};

use futures_util::future::select_all;

use crate::{Error, FencingToken, Held, LockName, LossReason, Result};

/// A view of several locks that are held together: their tokens, their deadline, the loss of one.
/// Cheap to clone; it does not hold the locks.
///
/// A [`LockSetGuard`](crate::LockSetGuard) derefs to this, and
/// [`LockSet::run`](crate::LockSet::run) passes it to the work.
#[derive(Clone, Debug)]
pub struct HeldSet(Arc<[Held]>);

impl HeldSet {
    pub(crate) fn new(held: impl Iterator<Item = Held>) -> Self {
        Self(held.collect())
    }

    /// Each name with its fencing token, in the order of the names.
    pub fn tokens(&self) -> impl Iterator<Item = (&LockName, FencingToken)> {
        self.0.iter().map(|held| (held.name(), held.token()))
    }

    pub(super) fn each(&self) -> &[Held] {
        &self.0
    }

    /// One of the locks; `None` if the name is not in the set.
    pub fn get(&self, name: impl AsRef<str>) -> Option<&Held> {
        let name = name.as_ref();
        self.0.iter().find(|held| held.name().as_str() == name)
    }

    /// Whether all of the locks are still held, like [`Held::is_valid`].
    pub fn is_valid(&self) -> bool {
        !self.remaining().is_zero()
    }

    /// How long all of them are still held without another renewal.
    pub fn remaining(&self) -> Duration {
        let left = self.0.iter().map(Held::remaining).min().unwrap_or_default();
        if left.is_zero() {
            self.end_looks();
        }
        left
    }

    /// Waits until one of the locks is lost, and returns its name and the reason, like
    /// [`Held::lost`].
    ///
    /// # Cancel safety
    ///
    /// Dropping the future ends the wait and nothing else.
    pub fn lost(&self) -> impl Future<Output = (LockName, LossReason)> + Send + use<> {
        let losses: Vec<_> = self
            .0
            .iter()
            .map(|held| (held.name().clone(), held.lost()))
            .map(|(name, lost)| Box::pin(async move { (name, lost.await) }))
            .collect();
        let looks: Vec<_> = self.0.iter().map(|held| held.0.lease.validity().clone()).collect();
        async move {
            let lost = select_all(losses).await.0;
            looks.iter().for_each(|validity| validity.look().end());
            lost
        }
    }

    /// Ends the look of each lock: whoever has seen the loss of one knows that the set is lost.
    fn end_looks(&self) {
        self.0.iter().for_each(|held| held.0.lease.validity().look().end());
    }

    /// Waits for the end of a close that has taken a lock of the set.
    pub(crate) async fn after_loss<T>(&self, told: &Result<T, Error>) {
        if let Some(held) = self.0.first() {
            held.0.client.after_loss(told).await;
        }
    }

    /// The loss of the first lock that is not held any more.
    pub(crate) fn check(&self) -> Result<(), Error> {
        self.0.iter().try_for_each(Held::check).inspect_err(|_| self.end_looks())
    }
}
