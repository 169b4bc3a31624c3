//! How an attempt gets its lock, or waits for it in the queue.

pub(crate) mod detach;
pub(crate) mod set;
pub(crate) mod simple;

use std::{slice, sync::Arc, time::Duration};

use futures_util::future::join_all;
use lock_core::{
    Clock, Effect, Error, Instant, Kind, Request, Result, Wait,
    keep::{
        limits,
        wait::{Waits, wait},
    },
    limit_conflict,
};
use redis::{Cmd, Value};

use crate::{
    error::{self, STORE},
    layout::kind,
    session::{Session, attempt::Attempt},
    wire::{
        answer::{self, Acquired},
        script,
        turns::Lane,
    },
};

/// Asks for the lock and waits for it. The attempt is in the session's book meanwhile, and remains
/// there if it is granted. Returns when the confirmed request was sent, from which validity counts,
/// and the token.
///
/// # Errors
///
/// Same as [`DistributedLock::acquire`](lock_core::DistributedLock::acquire).
pub(crate) async fn acquire(
    session: &Arc<Session>,
    attempt: &Arc<Attempt>,
    request: &Request,
    caller: &lock_core::Attempt,
) -> Result<(Instant, u64)> {
    let limit = match request.wait {
        Wait::Try => attempt.ttl.min(limits::TRY),
        _ => attempt.ttl,
    };
    let command = command(session, attempt, request);
    let asking = slice::from_ref(attempt);
    let (sent, answer) = ask(session, asking, &command, limit, caller, answer::acquired).await?;
    let mut held = match answer {
        Acquired::Granted(token) => confirmed(session, attempt, (sent, token), false).await?,
        Acquired::Busy => return Err(Error::Contended { name: attempt.name.clone() }),
        Acquired::OtherLimit(found) => return Err(limit_conflict(request, found)),
        Acquired::Waits(said) => {
            caller.queued(&attempt.name, said.place);
            if let Some(ask) = attempt.waits(sent, said) {
                session.ask(attempt, ask);
            }
            None
        }
    };
    loop {
        if let Some(granted) = held {
            return Ok(granted);
        }
        let granted = wait(session, attempt, caller).await?;
        held = confirmed(session, attempt, granted, true).await?;
    }
}

/// Renews a grant before it counts, if it may not be where it must be: replicas may not have a
/// hand-over yet, and a server that took over meanwhile may not know the grant. Returns `None` if
/// that server has the attempt in its queue: it waits again.
async fn confirmed(
    session: &Arc<Session>,
    attempt: &Arc<Attempt>,
    (sent, token): (Instant, u64),
    handed_over: bool,
) -> Result<Option<(Instant, u64)>> {
    let replicas = handed_over && session.wait_replicas > 0;
    if !replicas && !attempt.is_unconfirmed() {
        return Ok(Some((sent, token)));
    }
    match session.renew_by_hand(attempt).await {
        // A server that took over may have granted it anew.
        Ok(Some(renewed)) => Ok(Some(renewed)),
        Ok(None) if attempt.is_waiting() => Ok(None),
        Ok(None) => {
            session.clean_up(attempt);
            Err(Error::place_lost(STORE))
        }
        Err(error) => Err(undone(session, slice::from_ref(attempt), error).await),
    }
}

/// Takes back what the requests of attempts gained. Returns the error for the caller.
async fn undone(session: &Arc<Session>, attempts: &[Arc<Attempt>], error: Error) -> Error {
    let Some(short) = error::short(&error) else {
        attempts.iter().for_each(|attempt| session.clean_up(attempt));
        return error;
    };
    let removed = attempts.iter().map(|attempt| {
        let deadline = Clock::Boot.now() + attempt.patience();
        async move { session.withdraw(attempt, deadline).await.is_ok() }
    });
    let removed = join_all(removed).await;
    for (attempt, removed) in attempts.iter().zip(&removed) {
        if !removed {
            session.clean_up(attempt);
        }
    }
    match removed.into_iter().all(|removed| removed) {
        true => error::unavailable("acquire", Effect::None, short),
        false => error,
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
            let said = attempt.said.as_deref().map(str::as_bytes);
            script::acquire(attempt.member(), request.wait, &kind::word(kind), said)
        }
    }
}

/// Sends the request of one or more attempts again and again until it is answered, for at most
/// `limit`. If it fails, its possible effects are undone in the background.
pub(crate) async fn ask<T>(
    session: &Arc<Session>,
    attempts: &[Arc<Attempt>],
    command: &Cmd,
    limit: Duration,
    caller: &lock_core::Attempt,
    read: impl FnOnce(&Value) -> Option<T>,
) -> Result<(Instant, T)> {
    let deadline = Clock::Boot.now() + limit;
    let patience = attempts.iter().map(|attempt| attempt.patience()).min().unwrap_or(limit);
    let (before, answer) = session
        .insist_and_tell(("acquire", Lane::Turn), command, patience, deadline, Some(caller), read)
        .await;
    // A script that lacks a right may have done a part of its work.
    let unknown = |error: &Error| {
        [before, error.effect()].contains(&Effect::Unknown) || matches!(error, Error::Denied { .. })
    };
    match answer {
        Err(error) if unknown(&error) => Err(undone(session, attempts, error).await),
        answer => answer,
    }
}
