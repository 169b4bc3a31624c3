//! What a driver's author brings.

use std::time::Duration;

use async_trait::async_trait;

use super::{Failure, Guise};
use crate::{Kind, LockName, Locks};

/// What a harness answers where it cannot do what a check needs: the check is skipped, and this is why.
#[derive(Clone, Debug, thiserror::Error)]
#[error("{0}")]
pub struct NotHere(pub String);

/// A store for the properties, with its faults. Dropping it cleans up. Whatever it cannot do, it answers
/// with [`NotHere`].
#[async_trait]
pub trait Harness: Send + Sync {
    /// A new client with a connection and a session of its own, as another process would be.
    ///
    /// # Cancel safety
    ///
    /// Dropping the future leaves the harness fit for nothing but to be dropped.
    async fn client(&self) -> Result<Box<dyn Client>, Failure>;

    /// A TTL for the checks that wait for an expiry: short, but one that the store keeps.
    fn ttl(&self) -> Duration;

    /// The longest name that can be used, in bytes. Default: [`LockName::MAX_BYTES`].
    fn longest_name(&self) -> usize {
        LockName::MAX_BYTES
    }

    /// What the checks of an exclusive lock are made with; [`AsMutex`](super::AsMutex) takes something
    /// else that acts like one.
    fn guise(&self) -> Guise {
        Guise::Lock(Kind::Exclusive)
    }

    /// Kills the server and starts it again with its data.
    ///
    /// # Cancel safety
    ///
    /// Dropping the future leaves the harness fit for nothing but to be dropped.
    async fn restart(&self) -> Result<(), Failure>;

    /// Deletes everything that the store has under a lock's name, behind everybody's back, as an
    /// operator or an eviction does. What survives that on purpose (a counter of tokens that an
    /// operator would not know) is deleted too.
    ///
    /// # Cancel safety
    ///
    /// Dropping the future leaves the harness fit for nothing but to be dropped.
    async fn delete(&self, name: &LockName) -> Result<(), Failure>;

    /// What is in the store because somebody holds a lock or waits for one: entries, keys, watches.
    /// Not what a connected client costs (its session), and not what is kept for the next holder
    /// (a counter of tokens).
    ///
    /// # Cancel safety
    ///
    /// Dropping the future leaves the harness fit for nothing but to be dropped.
    async fn leftovers(&self) -> Result<Vec<String>, Failure>;
}

/// One client and the faults of its own network, [`NotHere`] if they cannot be had.
#[async_trait]
pub trait Client: Send + Sync {
    /// The client's locks.
    fn locks(&self) -> &Locks;

    /// Cuts the network without a word to either side: nothing arrives any more.
    ///
    /// # Cancel safety
    ///
    /// Dropping the future leaves the harness fit for nothing but to be dropped.
    async fn cut(&self) -> Result<(), Failure>;

    /// Half a cut: requests arrive, replies do not.
    ///
    /// # Cancel safety
    ///
    /// Dropping the future leaves the harness fit for nothing but to be dropped.
    async fn cut_replies(&self) -> Result<(), Failure>;

    /// Ends a cut.
    ///
    /// # Cancel safety
    ///
    /// Dropping the future leaves the harness fit for nothing but to be dropped.
    async fn heal(&self) -> Result<(), Failure>;

    /// What the store sees when the client's process dies: its connections are closed, nothing
    /// else is said, and it never comes back.
    ///
    /// # Cancel safety
    ///
    /// Dropping the future leaves the harness fit for nothing but to be dropped.
    async fn crash(&self) -> Result<(), Failure>;
}
