//! Detaching a lock for another process, and adopting a detached lock.
//!
//! Detaching gives the key the ticket's value, which no client renews. Adopting gives the key the
//! value of the adopting attempt. Each is one script that compares the value first, so it takes
//! effect once: a request that is sent twice finds its own effect.

use std::sync::Arc;

use lock_core::{
    Clock, Effect, Error, FencingToken, Instant, LossReason, Result,
    keep::{ticket::unreadable, wait::Waits},
};
use uuid::Uuid;

use crate::{
    error::STORE,
    layout::ticket::Ticket,
    session::{Session, attempt::Attempt},
    wire::{answer, script, turns::Lane},
};

/// Gives the lock to a new ticket, which no attempt has. Returns the ticket's text.
///
/// # Errors
///
/// [`Error::Lost`] if the attempt does not hold the lock any more. Else same as
/// [`Session::insist`].
pub(crate) async fn detach(
    session: &Session,
    attempt: &Attempt,
    token: FencingToken,
) -> Result<String> {
    let to = session.ticket(Uuid::new_v4());
    let command =
        script::hand_over(&attempt.key, attempt.ticket.text(), &to, attempt.ttl, token, None);
    match session.change(attempt, "detach", &command).await? {
        1 => Ok(String::from_utf8_lossy(to.text()).into_owned()),
        _ => Err(attempt.lost(LossReason::EntryGone)),
    }
}

/// Gives the lock to this attempt. Returns when the confirmed request was sent, from which validity
/// counts, and the token. The attempt is in the session's book meanwhile, and remains there.
///
/// # Errors
///
/// Same as [`DistributedLock::adopt`](lock_core::DistributedLock::adopt).
pub(crate) async fn adopt(
    session: &Arc<Session>,
    attempt: &Arc<Attempt>,
    caller: &lock_core::Attempt,
    ticket: &lock_core::Ticket,
) -> Result<(Instant, u64)> {
    let from = ticket.place().as_bytes();
    if Ticket::parse(from).is_none() {
        return Err(unreadable(STORE, ticket.place(), "CLIENT:ATTEMPT"));
    }
    let said = Some(attempt.said.as_deref().unwrap_or_default());
    let token = ticket.token();
    let command = script::hand_over(&attempt.key, from, &attempt.ticket, attempt.ttl, token, said);
    let (deadline, patience) = (Clock::Boot.now() + attempt.ttl, attempt.patience());
    let op = ("adopt", Lane::Turn);
    let (before, answer) =
        session.insist_and_tell(op, &command, patience, deadline, Some(caller), answer::int).await;
    let unknown = |error: &Error| [before, error.effect()].contains(&Effect::Unknown);
    if answer.as_ref().is_err_and(unknown) {
        session.clean_up(attempt);
    }
    match answer? {
        (sent, 1) => Ok((sent, token.value())),
        (_, -1) => Err(attempt.lost(LossReason::Adopted)),
        _ => Err(attempt.lost(LossReason::TicketOver)),
    }
}
