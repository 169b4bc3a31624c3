//! How an attempt gets its lock, or waits for it in the queue.

pub(crate) mod detach;
pub(crate) mod set;

use std::{slice, sync::Arc, time::Duration};

use lock_core::{
    Effect, Error, Instant, Request, Result, Term, Wait,
    deadline::safe_until,
    duration::shown,
    limit_conflict,
    queue::{Verdict, admitted, judge, other_limit},
};

use crate::{
    error,
    layout::row::{Row, Rows},
    queue::schedule::{blocked_for, next_look},
    session::{
        Session,
        attempt::{Attempt, End},
    },
    wire::{
        clock::CLOCK,
        script::{NewEntry, Script},
        turns::Rank,
    },
};

/// How long a try insists during an outage: lock-core gives up after 5 s.
pub(crate) const TRY_LIMIT: Duration = Duration::from_secs(4);

/// Asks for the lock and waits for it. The attempt is in the session's book meanwhile, and remains
/// there if it is granted. Answers the token, and since when at the latest it is valid.
///
/// # Errors
///
/// As [`DistributedLock::acquire`](lock_core::DistributedLock::acquire).
pub(crate) async fn acquire(
    session: &Arc<Session>,
    attempt: &Arc<Attempt>,
    request: &Request,
    caller: &lock_core::Attempt,
) -> Result<(Instant, u64)> {
    // In turn: the server would let one of them in at a time anyway, and whoever has left must be
    // gone before the next of this client looks.
    let limit = match request.wait {
        Wait::Try => attempt.ttl.min(TRY_LIMIT),
        _ => attempt.ttl,
    };
    let turn = session.book().turn(&attempt.name);
    let turn = session.own_turn(limit, caller, turn.lock()).await?;
    let rings = session.book().rings;
    let (sent, queue) = ask(session, attempt, request, caller, CLOCK.now() + limit).await?;
    if caller.is_cancelled() {
        session.withdraw(slice::from_ref(attempt), true, CLOCK.now() + attempt.ttl).await?;
        return Err(Error::Contended { name: attempt.name.clone() });
    }
    drop(turn);
    let Some(at) = queue.iter().position(|row| row.attempt == attempt.id) else {
        return Err(refused(request, &queue));
    };
    let sent = queue[at].confirmed(sent, attempt.ttl);
    let before: Vec<_> = queue[..at].iter().map(|row| row.kind).collect();
    if judge(&before, request.kind) == Verdict::Admitted {
        if queue[at].granted.is_none() {
            // Who was in the way has left meanwhile.
            attempt.found_granted();
            session.date(attempt);
        }
        session.entered(attempt);
        return Ok((sent, queue[at].token));
    }
    let place = at + 1 - admitted(queue.iter().map(|row| row.kind));
    caller.queued(&attempt.name, Some(place));
    attempt.waits(sent, queue[at].token);
    let look = next_look(session.dialect(), place, blocked_for(&queue, at));
    session.wait(attempt, look, rings);
    wait(session, attempt, caller).await
}

/// Sends the request of an attempt until it is answered. If it failed, whatever it may have done is
/// undone in the background.
async fn ask(
    session: &Arc<Session>,
    attempt: &Arc<Attempt>,
    request: &Request,
    caller: &lock_core::Attempt,
    deadline: Instant,
) -> Result<(Instant, Rows)> {
    let entry = NewEntry::new(session.id, attempt, request);
    if caller.is_cancelled() {
        return Err(Error::Contended { name: attempt.name.clone() });
    }
    let Some(_busy) = session.busy() else { return Err(error::closed(session.dialect())) };
    let script = |script: Script| script.acquire(&entry);
    let answer = session
        .insist(("acquire", Rank::Ask), script, attempt.patience(), deadline, Some(caller))
        .await;
    if answer.as_ref().is_err_and(|error| error.effect() == Effect::Unknown) {
        session.clean_up(vec![attempt.clone()]);
    }
    answer
}

/// Why the attempt is not in the queue.
fn refused(request: &Request, queue: &[Row]) -> Error {
    match other_limit(queue.iter().map(|row| row.kind), request.kind) {
        Some(found) => limit_conflict(request, found),
        None => Error::Contended { name: request.name.clone() },
    }
}

async fn wait(
    session: &Arc<Session>,
    attempt: &Arc<Attempt>,
    caller: &lock_core::Attempt,
) -> Result<(Instant, u64)> {
    let decided = tokio::select! {
        biased;
        decided = attempt.decided() => decided,
        () = caller.cancelled() => {
            let deadline = CLOCK.now() + attempt.ttl;
            session.withdraw(slice::from_ref(attempt), false, deadline).await?;
            return Err(Error::Contended { name: attempt.name.clone() });
        }
    };
    match decided {
        Ok((sent, token)) => {
            let sent = confirm(session, attempt, sent).await?;
            session.date(attempt);
            session.entered(attempt);
            Ok((sent, token))
        }
        Err(end) => Err(ended(session, attempt, end)),
    }
}

/// The error for an attempt that is over before it holds.
pub(crate) fn ended(session: &Arc<Session>, attempt: &Arc<Attempt>, end: End) -> Error {
    let dialect = session.dialect();
    match end {
        End::Closed => error::closed(dialect),
        End::Gone => {
            // It may have expired and still be there.
            session.clean_up(vec![attempt.clone()]);
            error::gone(dialect)
        }
        End::Unreachable => {
            session.clean_up(vec![attempt.clone()]);
            let silent = format!("the database did not answer for {}", shown(attempt.ttl));
            error::unavailable(dialect, "acquire", Effect::Unknown, silent)
        }
    }
}

/// Renews a grant before it is given out, if its term has run for a while already or is not renewed
/// later. Answers since when at the latest it is valid.
async fn confirm(session: &Arc<Session>, attempt: &Arc<Attempt>, sent: Instant) -> Result<Instant> {
    let fresh = CLOCK.now().since(sent) < attempt.ttl / 3;
    if fresh && attempt.term == Term::Renewed {
        return Ok(sent);
    }
    match session.renew(attempt).await {
        Ok(Some(renewed)) => Ok(renewed),
        Ok(None) => Err(error::late(session.dialect())),
        // The grant still holds, for a shorter time.
        Err(_) if CLOCK.now() < safe_until(sent, attempt.ttl) => Ok(sent),
        Err(error) => {
            session.clean_up(vec![attempt.clone()]);
            Err(error)
        }
    }
}
