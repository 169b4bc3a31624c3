//! Several locks by one request.

use std::sync::Arc;

use lock_core::{Attempt, Instant, Result, Wish};

use super::ask;
use crate::{
    session::{Session, attempt::Entry},
    wire::{answer, script},
};

/// How many names one request takes at most. The server does nothing else meanwhile, for one to three
/// milliseconds.
pub(crate) const NAMES: usize = 200;

/// Takes the locks of all entries, in either mode, or none. The entries are in the session's book meanwhile,
/// and remain there if all are granted. Answers the tokens, and since when at the latest they are valid.
///
/// # Errors
///
/// As [`DistributedLock::try_all`](lock_core::DistributedLock::try_all).
pub(crate) async fn acquire(
    session: &Arc<Session>,
    entries: &[Arc<Entry>],
    wishes: &[Wish],
    attempt: &Attempt,
) -> Result<Option<(Instant, Vec<u64>)>> {
    let holder = |(entry, (request, _)): (&Arc<Entry>, &'_ Wish)| {
        if entry.described { request.holder.clone() } else { Arc::default() }
    };
    let holders: Vec<Arc<str>> = entries.iter().zip(wishes).map(holder).collect();
    let members: Vec<_> = entries.iter().map(|entry| entry.member()).collect();
    let command = script::acquire_all(&members, &holders);
    let limit = entries.iter().map(|entry| entry.ttl).min().unwrap_or_default();
    let (sent, tokens) =
        ask(session, entries, &command, limit, attempt, answer::acquired_all).await?;
    Ok(tokens.map(|tokens| (sent, tokens)))
}
