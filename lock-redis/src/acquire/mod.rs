//! How an attempt gets its lock, or waits for it in the queue.

pub(crate) mod detach;
pub(crate) mod set;
pub(crate) mod simple;

use std::{slice, sync::Arc, time::Duration};

use lock_core::{
    Attempt, Effect, Error, Instant, Kind, Request, Result, Term, Wait, deadline::safe_until,
    duration::shown, limit_conflict,
};
use redis::{Cmd, Value};

use crate::{
    error,
    layout::kind,
    session::{
        Session,
        attempt::{End, Entry},
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

/// Asks for the lock and waits for it. The entry is in the session's book meanwhile, and remains
/// there if it is granted. Answers the token, and since when at the latest it is valid.
///
/// # Errors
///
/// As [`DistributedLock::acquire`](lock_core::DistributedLock::acquire).
pub(crate) async fn acquire(
    session: &Arc<Session>,
    entry: &Arc<Entry>,
    request: &Request,
    attempt: &Attempt,
) -> Result<(Instant, u64)> {
    let limit = match request.wait {
        Wait::Try => entry.ttl.min(TRY_LIMIT),
        _ => entry.ttl,
    };
    let command = command(session, entry, request);
    let asking = slice::from_ref(entry);
    let (sent, answer) = ask(session, asking, &command, limit, attempt, answer::acquired).await?;
    match answer {
        Acquired::Granted(token) => Ok((sent, token)),
        Acquired::Busy => Err(Error::Contended { name: entry.name.clone() }),
        Acquired::OtherLimit(found) => Err(limit_conflict(request, found)),
        Acquired::Waits(said) => {
            attempt.queued(&entry.name, said.place);
            if let Some(ask) = entry.waits(sent, said) {
                session.ask(entry, ask);
            }
            wait(session, entry, attempt).await
        }
    }
}

fn command(session: &Session, entry: &Entry, request: &Request) -> Cmd {
    let Entry { key, ticket, ttl, .. } = entry;
    let holder = entry.described.then_some(&*request.holder);
    match (request.kind, &request.value) {
        (Kind::Exclusive, Some(value)) => {
            let word = kind::candidate(session.database, &request.holder);
            let said = [request.holder.as_bytes(), value].concat();
            script::campaign(key, ticket, *ttl, request.wait, &word, &said)
        }
        (Kind::Exclusive, None) => script::acquire(key, ticket, *ttl, request.wait, holder),
        (kind, _) => script::join(key, ticket, *ttl, kind, request.wait, holder),
    }
}

/// Sends the request of one attempt, or of several, until it is answered, or for `limit`. If it
/// failed, whatever it may have done is undone in the background.
pub(crate) async fn ask<T>(
    session: &Arc<Session>,
    entries: &[Arc<Entry>],
    command: &Cmd,
    limit: Duration,
    attempt: &Attempt,
    read: impl FnOnce(&Value) -> Result<T>,
) -> Result<(Instant, T)> {
    let deadline = CLOCK.now() + limit;
    let patience = entries.iter().map(|entry| entry.patience()).min().unwrap_or(limit);
    let (before, answer) = session
        .insist_and_tell(Lane::Turn, "acquire", command, patience, deadline, Some(attempt))
        .await;
    let answer = answer.and_then(|(sent, value)| Ok((sent, read(&value)?)));
    // A script that may not do all that it needs may have done a part.
    let unknown = |error: &Error| {
        [before, error.effect()].contains(&Effect::Unknown) || matches!(error, Error::Denied { .. })
    };
    if answer.as_ref().is_err_and(unknown) {
        entries.iter().for_each(|entry| clean_up(session, entry));
    }
    answer
}

async fn wait(
    session: &Arc<Session>,
    entry: &Arc<Entry>,
    attempt: &Attempt,
) -> Result<(Instant, u64)> {
    let decided = tokio::select! {
        biased;
        decided = entry.decided() => decided,
        () = attempt.cancelled() => {
            let deadline = CLOCK.now() + entry.ttl;
            session.withdraw(entry, deadline).await?;
            return Err(Error::Contended { name: entry.name.clone() });
        }
    };
    match decided {
        Ok((sent, token)) => confirm(session, entry, sent).await.map(|sent| (sent, token)),
        Err(End::Gone) => {
            // If it was revoked while its request was on its way, that may have revived it.
            clean_up(session, entry);
            Err(error::gone())
        }
        Err(End::Closed) => Err(error::closed()),
        Err(End::Unreachable) => {
            clean_up(session, entry);
            let silent = format!("the server did not answer for {}", shown(entry.ttl));
            Err(error::unavailable("acquire", Effect::Unknown, silent))
        }
    }
}

/// Renews a grant before it is given out, if its term has run for a while already or is not renewed
/// later. Answers since when at the latest it is valid.
async fn confirm(session: &Arc<Session>, entry: &Arc<Entry>, sent: Instant) -> Result<Instant> {
    let fresh = CLOCK.now().since(sent) < entry.ttl / 3;
    if fresh && entry.term == Term::Renewed {
        return Ok(sent);
    }
    match session.renew(entry).await {
        Ok(Some(renewed)) => Ok(renewed),
        Ok(None) => {
            let late = "the grant was over before this client heard of it";
            Err(error::unavailable("acquire", Effect::None, late))
        }
        // The grant still holds, for a shorter time.
        Err(_) if CLOCK.now() < safe_until(sent, entry.ttl) => Ok(sent),
        Err(error) => {
            clean_up(session, entry);
            Err(error)
        }
    }
}

/// Removes in the background what an attempt may have left behind.
pub(crate) fn clean_up(session: &Arc<Session>, entry: &Arc<Entry>) {
    let (session, entry) = (session.clone(), entry.clone());
    // By then it has expired.
    let deadline = CLOCK.now() + entry.ttl * 2;
    tokio::spawn(async move { drop(session.withdraw(&entry, deadline).await) });
}
