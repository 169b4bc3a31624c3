//! How an attempt gets its lock, or waits for it in the queue.
//!
//! ```text
//! acquire   alone: one attempt of this client at a time enters a queue
//!           enter: the attempt's row is in the queue now, or `refused` says why not
//!           `judge`, the queue rule: the attempt holds the lock, or waits
//! enter     Script::acquire, one transaction: take a token, remove expired rows, insert the row,
//!           read the queue
//!           no answer: Session::insist sends it again, until the TTL is over. It finds the row by
//!               the attempt's id; Row::confirmed counts the validity from the row's writing, or from
//!               a little before
//!           too late: it fails, and Session::remove_later removes what may be there
//! wait      Session::look reads the queue: after a push, a change by this process, or a pause
//!           no answer: it looks again; renewals keep the row alive, and end the wait after a TTL
//!               without an answer (Unavailable)
//!           the row is gone, or has expired: PlaceLost
//!           nothing is before it that it would wait for: granted
//! confirm   Session::renew, if a third of the TTL is over or the lock is not renewed later
//!           no answer: the grant counts while it is valid; after that, Session::remove_later
//! hold      SqlLease; Session::renew_due renews all that the client has by one request
//!           no answer: again within a tenth of the TTL. Nothing confirmed for 0.95 of a TTL: the
//!               lock is lost, before the database can give it to another attempt
//!           the row is gone: lost
//! release   Session::remove, by Script::leave: delete the row, and wake the next
//!           no answer: again, until a TTL after the lock's end. A row that is gone is no error
//! cancelled the same; while it enters, `doubtful`: a request may still be about to enter
//! ```

pub(crate) mod detach;
pub(crate) mod set;

use std::{slice, sync::Arc, time::Duration};

use lock_core::{
    Clock, Effect, Error, Instant, Request, Result, Wait,
    keep::{cancel::unless_cancelled, limits, wait::wait},
    limit_conflict,
    queue::{Verdict, admitted, judge, other_limit},
};

use crate::{
    layout::{row::Row, schema},
    queue::schedule::{blocked_for, next_look},
    session::{Session, attempt::Attempt},
    wire::{
        database::{Call, Reply},
        script::Script,
        turns::Rank,
    },
};

/// Asks for the lock and waits for it. The attempt is in the session's book meanwhile, and remains
/// there if it is granted. Returns the token, and the time from which its validity counts.
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
    let entrance = session.entrance(&attempt.name).lock_owned();
    let enter = Box::pin(enter(session, attempt, request, limit, caller));
    let entered = alone(session, slice::from_ref(attempt), limit, caller, entrance, enter).await?;
    let Some((rings, Reply { sent, rows: queue, .. })) = entered else {
        return Err(Error::Contended { name: attempt.name.clone() });
    };
    let Some(at) = queue.iter().position(|row| row.attempt == attempt.id) else {
        let contended = || Error::Contended { name: request.name.clone() };
        return Err(refused(request, &queue).unwrap_or_else(contended));
    };
    let sent = queue[at].confirmed(sent, attempt.ttl);
    let before: Vec<_> = queue[..at].iter().map(|row| row.kind).collect();
    let is_granted = judge(&before, request.kind) == Verdict::Admitted;
    if is_granted && queue[at].granted.is_some() {
        session.entered(attempt);
        return Ok((sent, queue[at].token));
    }
    attempt.waits(sent, queue[at].token);
    if is_granted {
        // The attempts in the way have left meanwhile.
        attempt.admitted();
    } else {
        let holders = admitted(queue.iter().map(|row| row.kind));
        let place = at + 1 - holders;
        caller.queued(&attempt.name, Some(place));
        let head = session.book().head(&attempt.name, &queue[..holders]);
        let look = next_look(session.paced_as(), place, blocked_for(&queue, at), head);
        if session.book().wait(attempt, look, rings) {
            session.look_bell.notify_one();
        }
        session.listen();
    }
    let granted = Box::pin(wait(session, attempt, caller)).await?;
    session.entered(attempt);
    Ok(granted)
}

/// Has attempts enter their queues when no other attempt of this client is in their entrances.
/// Returns `None` if the caller cancels them: they have left then. The server would let one in at a
/// time anyway, and one that has left must be gone before the next one looks.
async fn alone<E, T>(
    session: &Arc<Session>,
    attempts: &[Arc<Attempt>],
    limit: Duration,
    caller: &lock_core::Attempt,
    entrance: impl Future<Output = E>,
    enter: impl Future<Output = Result<T>>,
) -> Result<Option<T>> {
    let passed = session.database.turns().while_answered(limit, entrance);
    let Some(passed) = unless_cancelled(Some(caller), passed).await else { return Ok(None) };
    let _entrance = passed.map_err(|failure| failure.unsent(session.dialect(), "acquire"))?;
    if caller.is_cancelled() {
        return Ok(None);
    }
    let entered = enter.await?;
    if !caller.is_cancelled() {
        return Ok(Some(entered));
    }
    let longest = attempts.iter().map(|attempt| attempt.ttl).max().unwrap_or_default();
    Box::pin(session.remove(attempts, true, Clock::Boot.now() + longest)).await?;
    Ok(None)
}

/// Enters the queue. Returns the number of rings before it asked, and the queue.
async fn enter(
    session: &Arc<Session>,
    attempt: &Arc<Attempt>,
    request: &Request,
    limit: Duration,
    caller: &lock_core::Attempt,
) -> Result<(u64, Reply)> {
    let own = slice::from_ref(attempt);
    let (rings, deadline) = (session.book().rings, Clock::Boot.now() + limit);
    let call = || call("acquire", Rank::Ask, own, deadline, caller);
    let enter = |script: Script| script.acquire(request, attempt.id, session.id);
    let mut reply = ask(session, own, call(), enter).await?;
    let is_left_out = reply.rows.iter().all(|row| row.attempt != attempt.id);
    if is_left_out && refused(request, &reply.rows).is_none() && !caller.is_cancelled() {
        // Its counter is gone, or what was in the way has left meanwhile.
        Box::pin(session.insist(call(), |script| schema::fill(script.0))).await?;
        reply = Box::pin(ask(session, own, call(), enter)).await?;
    }
    Ok((rings, reply))
}

/// A call that gives these attempts their entries.
fn call<'a>(
    op: &'static str,
    rank: Rank,
    attempts: &[Arc<Attempt>],
    deadline: Instant,
    caller: &'a lock_core::Attempt,
) -> Call<'a> {
    let patience = attempts.iter().map(|attempt| attempt.patience()).min().unwrap_or_default();
    Call { op, rank, patience, deadline, caller: Some(caller) }
}

/// Sends a request that gives these attempts their entries until the database answers. If it fails,
/// its possible effects are undone in the background. `close` waits for it.
async fn ask(
    session: &Arc<Session>,
    attempts: &[Arc<Attempt>],
    call: Call<'_>,
    script: impl Fn(Script) -> String,
) -> Result<Reply> {
    let _busy = session.busy()?;
    let reply = session.insist(call, script).await;
    if reply.as_ref().is_err_and(|error| error.effect() == Effect::Unknown) {
        session.remove_later(attempts.to_vec());
    }
    reply
}

/// Why an attempt is not in this queue; `None` if nothing in it is the reason.
fn refused(request: &Request, queue: &[Row]) -> Option<Error> {
    let kinds: Vec<_> = queue.iter().map(|row| row.kind).collect();
    if let Some(found) = other_limit(kinds.iter().copied(), request.kind) {
        return Some(limit_conflict(request, found));
    }
    let waits = judge(&kinds, request.kind) != Verdict::Admitted;
    let is_barred = request.wait == Wait::Try && waits;
    is_barred.then(|| Error::Contended { name: request.name.clone() })
}
