//! The wait for a grant, and the check before it is given out.

use std::{ops::Deref, sync::Arc, time::Duration};

use crate::{
    Attempt, Clock, Error, Instant, LossReason, Result, Term,
    keep::{
        attempt::{End, Progress},
        renewal::RENEWALS_PER_TTL,
    },
    validity::safe_until,
};

/// A session in which attempts wait.
pub trait Waits: Sized {
    /// The session's record of an attempt.
    type Attempt;

    /// Its clock.
    const CLOCK: Clock;

    /// The store's name, and the name of the silent side in errors: "the server".
    fn store(&self) -> (&'static str, &'static str);

    /// Renews an attempt. Returns the send time of the request that renewed it; `None` if the store
    /// does not have it any more, or has it in the queue again, which its stage says then.
    fn renew(
        &self,
        attempt: &Self::Attempt,
    ) -> impl Future<Output = Result<Option<Instant>>> + Send;

    /// Why the store does not have this attempt any more, when a renewal has not found it. Default:
    /// not known.
    fn loss(&self, _: &Self::Attempt) -> LossReason {
        LossReason::EntryGone
    }

    /// Removes a waiting attempt from the store, and tries again until the deadline.
    fn withdraw(
        self: &Arc<Self>,
        attempt: &Arc<Self::Attempt>,
        deadline: Instant,
    ) -> impl Future<Output = Result<()>> + Send;

    /// Removes in the background what an attempt may have left in the store.
    fn clean_up(self: &Arc<Self>, attempt: &Arc<Self::Attempt>);
}

/// Waits for the grant of an attempt that is in the queue. Returns the send time of the request
/// that confirmed it last, and its token. If it fails, the attempt's traces in the store are
/// removed. The caller cancels by its [`Attempt`], and the future runs to its end.
pub async fn wait<S: Waits<Attempt: Deref<Target = Progress<A, W, H>>>, A, W, H>(
    session: &Arc<S>,
    attempt: &Arc<S::Attempt>,
    caller: &Attempt,
) -> Result<(Instant, u64)> {
    loop {
        let decided = tokio::select! {
            biased;
            decided = attempt.decided() => decided,
            () = caller.cancelled() => {
                session.withdraw(attempt, S::CLOCK.now() + attempt.ttl).await?;
                return Err(Error::Contended { name: attempt.name.clone() });
            }
        };
        match decided {
            Ok((sent, token)) => {
                if let Some(sent) = renew_if_old(session, attempt, sent).await? {
                    return Ok((sent, token));
                }
                // A failover has lost the grant, and not the place.
            }
            Err(end) => {
                // An attempt that is gone may have expired and still be there, or a request under
                // way may have made it anew. A close removes everything.
                if end != End::Closed {
                    session.clean_up(attempt);
                }
                return Err(ended(&**session, attempt.ttl, end));
            }
        }
    }
}

/// The error for an attempt with this TTL that is over before it was held.
pub fn ended<S: Waits>(session: &S, ttl: Duration, end: End) -> Error {
    end.error(session.store(), ttl)
}

/// Renews a grant before it is given out, if a third of its term has passed or it is not renewed
/// later. Returns the send time of the request that confirmed it last; `None` if it waits again.
async fn renew_if_old<S: Waits<Attempt: Deref<Target = Progress<A, W, H>>>, A, W, H>(
    session: &Arc<S>,
    attempt: &Arc<S::Attempt>,
    sent: Instant,
) -> Result<Option<Instant>> {
    let fresh = S::CLOCK.now().since(sent) < attempt.ttl / RENEWALS_PER_TTL;
    if fresh && attempt.term == Term::Renewed {
        return Ok(Some(sent));
    }
    match session.renew(attempt).await {
        Ok(Some(renewed)) => Ok(Some(renewed)),
        Ok(None) if attempt.is_waiting() => Ok(None),
        Ok(None) => {
            let end = attempt.ending(session.loss(attempt), sent, S::CLOCK.now());
            Err(ended(&**session, attempt.ttl, end))
        }
        // The grant still holds, for a shorter time.
        Err(_) if S::CLOCK.now() < safe_until(sent, attempt.ttl) => Ok(Some(sent)),
        Err(error) => {
            session.clean_up(attempt);
            // A push may have told more meanwhile.
            Err(attempt.over().map_or(error, |end| ended(&**session, attempt.ttl, end)))
        }
    }
}
