//! The trait of a store without a queue.

use std::{fmt::Debug, io, time::Duration};

use async_trait::async_trait;
use uuid::Uuid;

use crate::{Clock, Entry, FencingToken, Guarantees, LockName, Request};

/// A store that keeps at most one entry per name.
///
/// # Contract
///
/// - **One entry:** [`take`](Self::take) is one atomic step: of all calls for a free name, in any
///   process, one succeeds.
/// - **An end:** an entry that is not renewed ends one TTL after the latest of its `take` and
///   `renew`, plus [`Guarantees::expiry_slack`], and not before. The TTL runs from when the store
///   acts.
/// - **Identity:** [`renew`](Self::renew) and [`remove`](Self::remove) touch only the entry of that
///   attempt, however late they come.
/// - **Tokens:** each `take` that succeeds returns a greater token, as [`Guarantees::fencing`]
///   grades it.
///
/// # Cancel safety
///
/// [`Polling`](super::Polling) polls the futures to their end while the runtime lives, except those
/// of [`holder`](Self::holder), [`names`](Self::names) and the `remove` of a revocation. It may drop
/// these half-way, which must leave nothing behind; such a `remove` may still act. A `renew` and a
/// `remove` for the same lease are never under way together;
/// calls of other clients may be.
///
/// # Errors
///
/// The kind of an [`io::Error`] decides the result; [`io::Error::other`] wraps a client library's
/// error.
///
/// | kind | the caller gets | |
/// |---|---|---|
/// | [`PermissionDenied`](io::ErrorKind::PermissionDenied) | [`Error::Denied`](crate::Error::Denied) | at once |
/// | [`InvalidData`](io::ErrorKind::InvalidData), [`InvalidFilename`](io::ErrorKind::InvalidFilename), [`InvalidInput`](io::ErrorKind::InvalidInput) | [`Error::Rejected`](crate::Error::Rejected) | at once |
/// | any other | [`Error::Unavailable`](crate::Error::Unavailable) | if it lasts for a TTL; until then the call is made again |
///
/// A request that failed may have acted: its traces are removed, unless the store
/// [does it](PolledStore::cleans_up).
#[async_trait]
pub trait PolledStore: Debug + Send + Sync + 'static {
    /// The store's promises, as in
    /// [`DistributedLock::guarantees`](crate::DistributedLock::guarantees). Start with
    /// [`Guarantees::least`], and raise what the store keeps; kinds, fairness, wake-ups and signals
    /// of a loss stay at the least.
    fn guarantees(&self) -> &Guarantees;

    /// The clock of all deadlines. Default: [`Clock::Boot`].
    fn clock(&self) -> Clock {
        Clock::Boot
    }

    /// Whether the store has been closed, so that no further call can succeed: a removal that failed
    /// is not tried again. Default: never.
    fn is_closed(&self) -> bool {
        false
    }

    /// Whether a [`take`](Self::take) that fails removes by itself what it may have left, in the
    /// background. Default: no, and [`remove`](Self::remove) is called for it.
    fn cleans_up(&self) -> bool {
        false
    }

    /// The longest pause between two tries of a waiter; each pause is between half of it and the
    /// whole. What waits for long pauses for a twentieth of the time that has passed instead, if
    /// that is more, up to 1 s. Default: 50 ms.
    fn pause(&self) -> Duration {
        Duration::from_millis(50)
    }

    /// Takes `request.name` for `request.ttl` if it is free, and returns the fencing token; `None`
    /// if another attempt has it. If this attempt has it already, because the answer to an earlier
    /// call was lost, it takes it again.
    async fn take(&self, request: &Request, attempt: Uuid) -> io::Result<Option<FencingToken>>;

    /// Lets the attempt's entry last for one more TTL from now; `false` if there is none.
    async fn renew(&self, request: &Request, attempt: Uuid) -> io::Result<bool>;

    /// Removes the attempt's entry, for a release or by [`Locks::revoke`](crate::Locks::revoke);
    /// `false` if there is none.
    async fn remove(&self, name: &LockName, attempt: Uuid) -> io::Result<bool>;

    /// The entry of a name, made with [`Entry::holding`]; `None` if it is free.
    async fn holder(&self, name: &LockName) -> io::Result<Option<Entry>>;

    /// The names that are taken and start with `prefix`, in order.
    async fn names(&self, prefix: &str) -> io::Result<Vec<LockName>>;
}
