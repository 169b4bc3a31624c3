//! The part that a driver's author writes.

use std::time::Duration;

use async_trait::async_trait;

use super::{Failure, Guise};
use crate::{Kind, LockName, Locks};

/// A store for the properties, with its faults. Dropping it cleans up. It returns
/// [`NotHere`](super::NotHere) for everything that it cannot do.
///
/// # Cancel safety
///
/// After one of these futures is dropped, the harness can only be dropped.
#[async_trait]
pub trait Harness: Send + Sync {
    /// A new client with its own connection and session, as in another process.
    async fn client(&self) -> Result<Box<dyn Client>, Failure>;

    /// A TTL for the checks that wait for an expiry: short, but one that the store keeps.
    fn ttl(&self) -> Duration;

    /// The longest name that can be used, in bytes. Default: [`LockName::MAX_BYTES`].
    fn longest_name(&self) -> usize {
        LockName::MAX_BYTES
    }

    /// The lock that the checks of an exclusive lock use. [`AsMutex`](super::AsMutex) uses another
    /// one that acts like it.
    fn guise(&self) -> Guise {
        Guise::Lock(Kind::Exclusive)
    }

    /// Kills the server and starts it again with its data.
    async fn restart(&self) -> Result<(), Failure>;

    /// Deletes everything that the store has under a lock's name, unknown to its clients, as an
    /// operator or an eviction does. This includes what survives a deletion on purpose (a counter
    /// of tokens that an operator would not know).
    async fn delete(&self, name: &LockName) -> Result<(), Failure>;

    /// Everything that is in the store because of a holder or a waiter: entries, keys, watches, and
    /// marks of work, also those whose period is over. It excludes the cost of a connected client
    /// (its session), and what is kept for the next holder (a counter of tokens).
    async fn leftovers(&self) -> Result<Vec<String>, Failure>;
}

/// One client and the faults of its own network; [`NotHere`](super::NotHere) for a fault that it
/// cannot make.
///
/// # Cancel safety
///
/// Same as [`Harness`].
#[async_trait]
pub trait Client: Send + Sync {
    /// The client's locks.
    fn locks(&self) -> &Locks;

    /// Cuts the network without notice to either side: nothing arrives any more.
    async fn cut(&self) -> Result<(), Failure>;

    /// Half a cut: requests arrive, replies do not.
    async fn cut_replies(&self) -> Result<(), Failure>;

    /// Ends a cut.
    async fn heal(&self) -> Result<(), Failure>;

    /// Ends a cut as the end of the connection does: what it holds back is lost, and the client
    /// connects again. Default: [`heal`](Self::heal), which delivers it late.
    async fn lose_replies(&self) -> Result<(), Failure> {
        self.heal().await
    }

    /// What the store sees when the client's process dies: its connections are closed without
    /// another message, and it never comes back.
    async fn crash(&self) -> Result<(), Failure>;
}
