//! The simple mode: no queue, waiters poll.

use std::{slice, sync::Arc, time::Duration};

use lock_core::{Error, Instant, Request, Result, Wait, keep::backoff::Backoff};

use super::ask;
use crate::{
    error,
    layout::kind::EXCLUSIVE,
    session::{Session, attempt::Attempt},
    wire::{
        answer::{self, Acquired},
        script,
    },
};

/// Waiters poll after the first of these times, then less and less often, up to the second.
const BACKOFF: Backoff = Backoff::new(Duration::from_millis(10), Duration::from_millis(250));

/// Asks for the lock until it is granted. Returns when the confirmed request was sent, from which
/// validity counts, and the token.
pub(crate) async fn acquire(
    session: &Arc<Session>,
    attempt: &Arc<Attempt>,
    request: &Request,
    caller: &lock_core::Attempt,
) -> Result<(Instant, u64)> {
    let wanted = script::acquire(attempt.member(), Wait::Try, EXCLUSIVE, None);
    let mut pause = BACKOFF;
    loop {
        let asking = slice::from_ref(attempt);
        let (sent, answer) =
            ask(session, asking, &wanted, attempt.ttl, caller, answer::acquired).await?;
        let busy = Error::Contended { name: attempt.name.clone() };
        match answer {
            Acquired::Granted(token) => return Ok((sent, token)),
            _ if request.wait == Wait::Try => return Err(busy),
            _ => caller.queued(&attempt.name, None),
        }
        tokio::select! {
            () = pause.wait() => {}
            () = caller.cancelled() => return Err(busy),
        }
        if attempt.is_over() {
            return Err(error::closed());
        }
    }
}
