//! From an attempt to its lease: the session's book has the attempt from before its first request
//! until its lease ends.

use std::{ops::Deref, pin::Pin, sync::Arc};

use crate::{
    Instant, Lease, Result,
    keep::{
        attempt::{End, Progress},
        wait::{Waits, ended},
    },
};

/// A session that makes leases.
pub trait Grants: Waits {
    /// Registers an attempt for renewal.
    fn enter(&self, attempt: &Arc<Self::Attempt>) -> Result<()>;

    /// Forgets an attempt.
    fn forget(&self, attempt: &Self::Attempt);

    /// Makes the lease of a grant with this token. Its validity counts from `sent`.
    fn hold(
        self: &Arc<Self>,
        attempt: &Arc<Self::Attempt>,
        sent: Instant,
        token: u64,
    ) -> Result<Box<dyn Lease>, End>;

    /// Removes in the background what attempts of one request may have left in the store.
    fn clean_up_all(self: &Arc<Self>, attempts: &[Arc<Self::Attempt>]);
}

/// Makes an attempt's lease when it is granted. A grant is the time from which validity counts, and
/// a token. If it fails, the session forgets the attempt. The caller cancels by its
/// [`Attempt`](crate::Attempt), and the future runs to its end. It is pinned by the caller: passed
/// by value, it would lie twice in this future.
pub async fn lease<S: Grants<Attempt: Deref<Target = Progress<A, W, H>>>, A, W, H>(
    session: &Arc<S>,
    attempt: &Arc<S::Attempt>,
    granted: Pin<&mut impl Future<Output = Result<(Instant, u64)>>>,
) -> Result<Box<dyn Lease>> {
    session.enter(attempt)?;
    let held = granted.await.and_then(|granted| {
        // An attempt that was closed or revoked meanwhile leaves nothing.
        hold(session, attempt, granted).inspect_err(|_| session.clean_up(attempt))
    });
    held.inspect_err(|_| session.forget(attempt))
}

/// Makes the leases of attempts that are granted together; `None` if they are not granted.
/// Otherwise as [`lease`].
pub async fn leases<S: Grants<Attempt: Deref<Target = Progress<A, W, H>>>, A, W, H>(
    session: &Arc<S>,
    attempts: &[Arc<S::Attempt>],
    granted: Pin<&mut impl Future<Output = Result<Option<Vec<(Instant, u64)>>>>>,
) -> Result<Option<Vec<Box<dyn Lease>>>> {
    let granted = match attempts.iter().try_for_each(|attempt| session.enter(attempt)) {
        Ok(()) => granted.await,
        Err(closed) => Err(closed),
    };
    let held = granted.and_then(|granted| {
        let Some(granted) = granted else { return Ok(None) };
        let hold = |(attempt, granted)| hold(session, attempt, granted);
        let held = attempts.iter().zip(granted).map(hold).collect::<Result<_>>().map(Some);
        held.inspect_err(|_| session.clean_up_all(attempts))
    });
    if !matches!(held, Ok(Some(_))) {
        attempts.iter().for_each(|attempt| session.forget(attempt));
    }
    held
}

fn hold<S: Grants<Attempt: Deref<Target = Progress<A, W, H>>>, A, W, H>(
    session: &Arc<S>,
    attempt: &Arc<S::Attempt>,
    (sent, token): (Instant, u64),
) -> Result<Box<dyn Lease>> {
    session.hold(attempt, sent, token).map_err(|end| ended(&**session, attempt.ttl, end))
}
