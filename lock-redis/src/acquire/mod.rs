//! How an attempt gets its lock, or waits for it in the queue.

pub(crate) mod detach;
pub(crate) mod set;
pub(crate) mod simple;

use std::{slice, sync::Arc, time::Duration};

use lock_core::{
    Effect, Error, Instant, Kind, Request, Result, Term, Wait, deadline::safe_until,
    duration::shown, limit_conflict,
};
use redis::{Cmd, Value};

use crate::{
    error,
    layout::kind,
    session::{
        Session,
        attempt::{Attempt, End},
    },
    wire::{
        answer::{self, Acquired},
        clock::CLOCK,
        script,
        turns::Lane,
    },
};

/// How long a try insists during an outage: lock-core gives up after 5 s.
const TRY_LIMIT: Duration = Duration::from_secs(4);

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
    let limit = match request.wait {
        Wait::Try => attempt.ttl.min(TRY_LIMIT),
        _ => attempt.ttl,
    };
    let command = command(session, attempt, request);
    let asking = slice::from_ref(attempt);
    let (sent, answer) = ask(session, asking, &command, limit, caller, answer::acquired).await?;
    match answer {
        Acquired::Granted(token) => Ok((sent, token)),
        Acquired::Busy => Err(Error::Contended { name: attempt.name.clone() }),
        Acquired::OtherLimit(found) => Err(limit_conflict(request, found)),
        Acquired::Waits(said) => {
            caller.queued(&attempt.name, said.place);
            if let Some(ask) = attempt.waits(sent, said) {
                session.ask(attempt, ask);
            }
            wait(session, attempt, caller).await
        }
    }
}

fn command(session: &Session, attempt: &Attempt, request: &Request) -> Cmd {
    match (request.kind, &request.value) {
        (Kind::Exclusive, Some(value)) => {
            let word = kind::candidate(session.database, &request.holder);
            let said = [request.holder.as_bytes(), value].concat();
            script::acquire(attempt.member(), request.wait, &word, Some(&said))
        }
        (kind, _) => {
            let said = attempt.described.then_some(request.holder.as_bytes());
            script::acquire(attempt.member(), request.wait, &kind::word(kind), said)
        }
    }
}

/// Sends the request of one attempt, or of several, until it is answered, or for `limit`. If it
/// failed, whatever it may have done is undone in the background.
pub(crate) async fn ask<T>(
    session: &Arc<Session>,
    attempts: &[Arc<Attempt>],
    command: &Cmd,
    limit: Duration,
    caller: &lock_core::Attempt,
    read: impl FnOnce(&Value) -> Result<T>,
) -> Result<(Instant, T)> {
    let deadline = CLOCK.now() + limit;
    let patience = attempts.iter().map(|attempt| attempt.patience()).min().unwrap_or(limit);
    let (before, answer) = session
        .insist_and_tell(Lane::Turn, "acquire", command, patience, deadline, Some(caller))
        .await;
    let answer = answer.and_then(|(sent, value)| Ok((sent, read(&value)?)));
    // A script that may not do all that it needs may have done a part.
    let unknown = |error: &Error| {
        [before, error.effect()].contains(&Effect::Unknown) || matches!(error, Error::Denied { .. })
    };
    if answer.as_ref().is_err_and(unknown) {
        attempts.iter().for_each(|attempt| clean_up(session, attempt));
    }
    answer
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
            session.withdraw(attempt, deadline).await?;
            return Err(Error::Contended { name: attempt.name.clone() });
        }
    };
    match decided {
        Ok((sent, token)) => confirm(session, attempt, sent).await.map(|sent| (sent, token)),
        Err(End::Gone) => {
            // If it was revoked while its request was on its way, that may have revived it.
            clean_up(session, attempt);
            Err(error::gone())
        }
        Err(End::Closed) => Err(error::closed()),
        Err(End::Unreachable) => {
            clean_up(session, attempt);
            let silent = format!("the server did not answer for {}", shown(attempt.ttl));
            Err(error::unavailable("acquire", Effect::Unknown, silent))
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
        Ok(None) => {
            let late = "the grant was over before this client heard of it";
            Err(error::unavailable("acquire", Effect::None, late))
        }
        // The grant still holds, for a shorter time.
        Err(_) if CLOCK.now() < safe_until(sent, attempt.ttl) => Ok(sent),
        Err(error) => {
            clean_up(session, attempt);
            Err(error)
        }
    }
}

/// Removes in the background what an attempt may have left behind.
pub(crate) fn clean_up(session: &Arc<Session>, attempt: &Arc<Attempt>) {
    let (session, attempt) = (session.clone(), attempt.clone());
    // By then it has expired.
    let deadline = CLOCK.now() + attempt.ttl * 2;
    tokio::spawn(async move { drop(session.withdraw(&attempt, deadline).await) });
}
