//! Several locks by one request.

use std::{collections::BTreeSet, sync::Arc};

use lock_core::{Instant, Result, keep::errors::unsupported};

use super::ask;
use crate::{
    error::STORE,
    session::{Session, attempt::Attempt},
    wire::{answer, script},
};

/// The most names that one request takes. The server does nothing else meanwhile, for one to three
/// milliseconds.
pub(crate) const NAMES: usize = 200;

/// Takes the locks of all attempts, in either mode, or none. The attempts are in the session's book
/// meanwhile, and remain there if all are granted. Returns the tokens, each with when the confirmed
/// request was sent, from which validity counts.
pub(crate) async fn acquire(
    session: &Arc<Session>,
    attempts: &[Arc<Attempt>],
    caller: &lock_core::Attempt,
) -> Result<Option<Vec<(Instant, u64)>>> {
    let parts: BTreeSet<_> = attempts.iter().map(|it| session.routes.part(&it.key)).collect();
    if parts.len() > 1 {
        return Err(unsupported(STORE, "take locks of several slots in one step"));
    }
    let Some(first) = attempts.first() else { return Ok(Some(Vec::new())) };
    let members = attempts.iter().map(|attempt| attempt.member());
    let descriptions = attempts.iter().map(|it| it.description.as_deref().unwrap_or_default());
    let wishes: Vec<_> = members.zip(descriptions).collect();
    let request = script::acquire_all(&wishes, &first.key);
    let limit = attempts.iter().map(|attempt| attempt.ttl).min().unwrap_or_default();
    let (sent, tokens) =
        ask(session, attempts, &request, limit, caller, answer::acquired_all).await?;
    Ok(tokens.map(|tokens| tokens.into_iter().map(|token| (sent, token)).collect()))
}
