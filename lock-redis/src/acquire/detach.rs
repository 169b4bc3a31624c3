//! Detaching a lock for another process, and adopting a detached lock.
//!
//! Detaching gives the key the ticket's value, which no client renews. Adopting gives the key the
//! value of the adopting attempt. Each is one script that compares the value first, so it takes
//! effect once: a request that is sent twice finds its own effect.

use std::{slice, sync::Arc};

use lock_core::{Clock, Effect, Error, FencingToken, Instant, LossReason, Result};
use redis::Value;
use uuid::Uuid;

use crate::{
    error,
    layout::ticket::Ticket,
    session::{Session, attempt::Attempt},
    wire::{script, turns::Lane},
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
        _ => Err(lost(attempt, LossReason::EntryGone)),
    }
}

/// Gives the lock to this attempt. Returns when the confirmed request was sent: validity counts
/// from then. The attempt is in the session's book meanwhile, and remains there.
///
/// # Errors
///
/// Same as [`DistributedLock::adopt`](lock_core::DistributedLock::adopt).
pub(crate) async fn adopt(
    session: &Arc<Session>,
    attempt: &Arc<Attempt>,
    caller: &lock_core::Attempt,
    ticket: &lock_core::Ticket,
) -> Result<Instant> {
    let from = ticket.place().as_bytes();
    if Ticket::parse(from).is_none() {
        return Err(Error::InvalidOption {
            option: "ticket".to_owned(),
            value: ticket.place().chars().take(8).collect(),
            allowed: "the place in a ticket of redis is CLIENT:ATTEMPT".to_owned(),
        });
    }
    let said = Some(attempt.said.as_deref().unwrap_or_default());
    let token = ticket.token();
    let command = script::hand_over(&attempt.key, from, &attempt.ticket, attempt.ttl, token, said);
    let (deadline, patience) = (Clock::Boot.now() + attempt.ttl, attempt.patience());
    let (before, answer) = session
        .insist_and_tell(Lane::First, "adopt", &command, patience, deadline, Some(caller))
        .await;
    let unknown = |error: &Error| [before, error.effect()].contains(&Effect::Unknown);
    if answer.as_ref().is_err_and(unknown) {
        session.remove_later(slice::from_ref(attempt));
    }
    match answer? {
        (sent, Value::Int(1)) => Ok(sent),
        (_, Value::Int(-1)) => Err(lost(attempt, LossReason::Adopted)),
        (_, Value::Int(_)) => Err(lost(attempt, LossReason::TicketOver)),
        (_, value) => Err(error::unexpected("adopt", &value)),
    }
}

fn lost(attempt: &Attempt, reason: LossReason) -> Error {
    Error::Lost { name: attempt.name.clone(), reason }
}
