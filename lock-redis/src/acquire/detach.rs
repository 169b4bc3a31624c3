//! Detaching a lock for another process, and adopting a detached lock.
//!
//! Detaching gives the key the ticket's value, which no client renews. Adopting gives the key the
//! value of the adopting attempt. Each is one script that compares the value first, so it takes
//! effect once: a request that is sent twice finds its own effect.

use std::sync::Arc;

use lock_core::{
    Clock, FencingToken, Instant, LossReason, Result,
    keep::{ticket::unreadable, wait::Waits},
};
use uuid::Uuid;

use crate::{
    error::STORE,
    layout::ticket::Ticket,
    session::{Session, attempt::Attempt, retry::Effort},
    wire::{
        answer,
        script::{self, Member},
    },
};

/// Gives the lock to a new ticket, which no attempt has. Returns the ticket's text.
pub(crate) async fn detach(
    session: &Session,
    attempt: &Attempt,
    token: FencingToken,
) -> Result<String> {
    let to = session.ticket(Uuid::new_v4());
    let from = attempt.ticket.text();
    let to_it = Member { ticket: &to, ..attempt.member() };
    let request = script::detach(from, to_it, token, None);
    match session.change(attempt, "detach", &request).await? {
        1 => Ok(String::from_utf8_lossy(to.text()).into_owned()),
        _ => Err(attempt.lost(LossReason::EntryGone)),
    }
}

/// Gives the lock to this attempt. Returns when the confirmed request was sent, from which validity
/// counts, and the token. The attempt is in the session's book meanwhile, and remains there.
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
    let description = Some(attempt.description.as_deref().unwrap_or_default());
    let token = ticket.token();
    let request = script::detach(from, attempt.member(), token, description);
    let deadline = Clock::Boot.now() + attempt.ttl;
    let effort = Effort::in_turn("adopt", attempt.patience(), deadline);
    let effort = Effort { caller: Some(caller), ..effort };
    let outcome = session.insist(&request, effort, answer::int).await;
    if outcome.is_unknown() {
        session.clean_up(attempt);
    }
    match outcome.answer? {
        (sent, 1) => Ok((sent, token.value())),
        (_, -1) => Err(attempt.lost(LossReason::Adopted)),
        _ => Err(attempt.lost(LossReason::TicketOver)),
    }
}
