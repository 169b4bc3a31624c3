//! How an attempt gets its lock, or waits for it in the queue.
//!
//! ```text
//! acquire:
//!     ask ACQUIRE, one script, which writes the attempt's ticket:
//!         free                  -> granted, with a token
//!         taken, Wait::Try      -> Contended; nothing was written
//!         taken                 -> queued, behind those before it
//!         no answer             -> sent again until a TTL is over, a try for at most 4 s
//!                                  (Session::insist): the script finds the ticket of the first
//!                                  request, and answers as it did
//!         no answer for a TTL,
//!         or caller left before -> undone: release in the background, again until answered or 2 TTLs
//!     until granted:
//!         wait for a push (Session::pushed), or for the answer of a renewal, which finds a lost push
//!             caller leaves     -> withdraw: RELEASE, which leaves the queue or hands the lock on
//!             gone, or silent
//!             for a TTL         -> clean_up: RELEASE in the background; PlaceLost, or Unavailable
//!         older than a third of its TTL, or a fixed term -> renew_by_hand first (keep::wait)
//!     checked: wait_replicas, or a server that took over, may lack the grant -> renew_by_hand
//!             found             -> granted
//!             queued again      -> waits on
//!             not found         -> clean_up, PlaceLost
//!             no answer,
//!             too few replicas  -> undone
//! hold (grant): the lease; valid for a TTL from when the request that was answered was sent: a
//!                                  repetition renews what an earlier request got
//!     renewal, a third of a TTL after the last one (session/renewal)
//!             found             -> valid for a TTL from when it was sent
//!             not found         -> lost, EntryGone or Failover
//!             no answer         -> again within a tenth of a TTL; lost at the deadline
//!     a fixed term is only checked, after a reconnect or at the sign of a failover:
//!             found             -> the key lasts as long as the term, at least: a late check takes
//!                                  no time that the holder's own renewal has given
//!             not found         -> lost, EntryGone or Failover
//! release (Session::withdraw): RELEASE, which gives the lock to the next in line
//!             no answer         -> sent again until the key has expired: it compares the ticket, so
//!                                  it never takes the lock of another attempt
//! ```

pub(crate) mod detach;
mod grant;
pub(crate) mod set;
pub(crate) mod simple;

use std::{slice, sync::Arc, time::Duration};

use futures_util::future::join_all;
use lock_core::{
    Clock, Effect, Error, Instant, Kind, Request, Result, Wait,
    keep::{
        limits,
        wait::{Waits, ended, wait},
    },
    limit_conflict,
};
use redis::Value;

use crate::{
    error,
    layout::kind,
    session::{Session, attempt::Attempt, retry::Effort},
    wire::{
        answer::{self, Acquired},
        call, script,
    },
};

/// Asks for the lock and waits for it. The attempt is in the session's book meanwhile, and remains
/// there if it is granted. Returns when the confirmed request was sent, from which validity counts,
/// and the token.
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
    let wanted = wanted(session, attempt, request);
    let asking = slice::from_ref(attempt);
    let (sent, answer) = ask(session, asking, &wanted, limit, caller, answer::acquired).await?;
    let mut held = match answer {
        Acquired::Granted(token) => checked(session, attempt, sent, token, false).await?,
        Acquired::Busy => return Err(Error::Contended { name: attempt.name.clone() }),
        Acquired::OtherLimit(found) => return Err(limit_conflict(request, found)),
        Acquired::Waits(answer) => {
            caller.queued(&attempt.name, answer.place);
            session.ask(attempt, attempt.waits(sent, answer));
            None
        }
    };
    loop {
        if let Some(granted) = held {
            return Ok(granted);
        }
        let (sent, token) = Box::pin(wait(session, attempt, caller)).await?;
        held = checked(session, attempt, sent, token, true).await?;
    }
}

/// Renews a grant before it counts, if it may not be where it must be: replicas may not have a
/// hand-over yet, and a server that took over meanwhile may not know the grant. Returns `None` if
/// that server has the attempt in its queue: it waits again.
async fn checked(
    session: &Arc<Session>,
    attempt: &Arc<Attempt>,
    sent: Instant,
    token: u64,
    handed_over: bool,
) -> Result<Option<(Instant, u64)>> {
    let replicas = handed_over && session.config.wait_replicas > 0;
    if !replicas && !attempt.is_missing() {
        return Ok(Some((sent, token)));
    }
    match Box::pin(session.renew_by_hand(attempt)).await {
        // A server that took over may have granted it anew.
        Ok(Some(renewed)) => Ok(Some(renewed)),
        Ok(None) if attempt.is_waiting() => Ok(None),
        Ok(None) => {
            session.clean_up(attempt);
            let end = attempt.ending(attempt.loss(), sent, Clock::Boot.now());
            Err(ended(&**session, attempt.ttl, end))
        }
        Err(error) => {
            // A revoke that was told meanwhile says more.
            let told = attempt.over().map(|end| ended(&**session, attempt.ttl, end));
            let error = Box::pin(undone(session, slice::from_ref(attempt), error)).await;
            Err(told.unwrap_or(error))
        }
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

fn wanted<'a>(session: &Session, attempt: &'a Attempt, request: &Request) -> call::Request<'a> {
    match (request.kind, &request.value) {
        (Kind::Exclusive, Some(value)) => {
            let word = kind::candidate(session.config.database, &request.holder);
            let description = [request.holder.as_bytes(), value].concat();
            script::acquire(attempt.member(), request.wait, &word, Some(&description))
        }
        (kind, _) => {
            let description = attempt.description.as_deref().map(str::as_bytes);
            script::acquire(attempt.member(), request.wait, &kind::word(kind), description)
        }
    }
}

/// Sends the request of one or more attempts again and again until it is answered, for at most
/// `limit`. If it fails, its possible effects are undone in the background.
pub(crate) async fn ask<T>(
    session: &Arc<Session>,
    attempts: &[Arc<Attempt>],
    wanted: &call::Request<'_>,
    limit: Duration,
    caller: &lock_core::Attempt,
    read: impl FnOnce(&Value) -> Option<T>,
) -> Result<(Instant, T)> {
    let deadline = Clock::Boot.now() + limit;
    let patience = attempts.iter().map(|attempt| attempt.patience()).min().unwrap_or(limit);
    let effort = Effort::in_turn("acquire", patience, deadline);
    let effort = Effort { caller: Some(caller), ..effort };
    let outcome = session.insist(wanted, effort, read).await;
    let unknown = outcome.is_unknown();
    match outcome.answer {
        // A script that lacks a right may have done a part of its work.
        Err(error) if unknown || matches!(error, Error::Denied { .. }) => {
            Err(Box::pin(undone(session, attempts, error)).await)
        }
        answer => answer,
    }
}
