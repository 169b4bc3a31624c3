//! Leaving a lock to another process, and taking up one that was left.
//!
//! The row gets another attempt, which no client renews: the ticket's. The process that adopts the
//! lock gives the row its own attempt. Each of the two is one `UPDATE` that checks the previous
//! attempt. So it takes effect once, and a request that is sent again finds what the first one did.

use std::{slice, sync::Arc};

use lock_core::{Clock, Instant, LossReason, Request, Result, Ticket, keep::ticket::unreadable};
use uuid::Uuid;

use super::{ask, call};
use crate::{
    session::{Session, attempt::Attempt},
    wire::{database::Reply, script::Script, turns::Rank},
};

/// Gives the row a new attempt's id, which no client renews. Returns the id.
pub(crate) async fn detach(session: &Session, attempt: &Attempt, token: u64) -> Result<Uuid> {
    // `close` waits for this, so it leaves a detached row alone.
    let _busy = session.busy()?;
    let to = Uuid::new_v4();
    let (name, from, granted) = (&attempt.name, attempt.id, attempt.undated());
    let script = |script: Script| script.hand_over(name, token, from, to, None, granted);
    let Reply { rows, .. } = session.insist(attempt.call("detach", Rank::HandOver), script).await?;
    let left = rows.iter().any(|row| row.attempt == to && !row.left.is_zero());
    left.then_some(to).ok_or_else(|| attempt.lost(LossReason::EntryGone))
}

/// Gives the row to this attempt. Returns the time from which its validity counts, and the token.
/// The attempt is in the session's book meanwhile, and remains there.
pub(crate) async fn adopt(
    session: &Arc<Session>,
    attempt: &Arc<Attempt>,
    request: &Request,
    caller: &lock_core::Attempt,
    ticket: &Ticket,
) -> Result<(Instant, u64)> {
    let (store, place) = (session.dialect().store(), ticket.place());
    let from = Uuid::try_parse(place).map_err(|_| unreadable(store, place, "a UUID"))?;
    let (token, to) = (ticket.token().value(), attempt.id);
    let holder = Some((session.id, &*request.holder));
    let name = &attempt.name;
    let script = |script: Script| script.hand_over(name, token, from, to, holder, None);
    let (own, deadline) = (slice::from_ref(attempt), Clock::Boot.now() + attempt.ttl);
    // The row's time is running: like a held lock, it goes before attempts that only wait.
    let call = call("adopt", Rank::HandOver, own, deadline, caller);
    let Reply { sent, rows, .. } = ask(session, own, call, script).await?;
    match rows.iter().find(|row| !row.left.is_zero()) {
        Some(row) if row.attempt == to => Ok((row.confirmed(sent, attempt.ttl), token)),
        Some(row) if row.attempt != from => Err(attempt.lost(LossReason::Adopted)),
        // It is gone, or was not handed over: its token is not above the floor.
        _ => Err(attempt.lost(LossReason::TicketOver)),
    }
}
