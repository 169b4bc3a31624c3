//! Several locks by one transaction.

use std::{
    collections::{BTreeMap, HashMap},
    sync::Arc,
};

use lock_core::{Clock, Error, Instant, Result, keep::limits};
use tokio::sync::OwnedMutexGuard;

use super::{alone, ask, call};
use crate::{
    layout::row::Row,
    session::{Session, attempt::Attempt},
    wire::{database::Reply, script::Script, turns::Rank},
};

/// Most names in one transaction. With the longest names, its message has about 400 KiB, plus the
/// holders' descriptions.
pub(crate) const NAMES: usize = 100;

/// Takes the locks of all attempts, or none. The attempts are in the session's book meanwhile, and
/// remain there if all are granted. Returns the tokens, each with the time from which its
/// validity counts.
pub(crate) async fn acquire(
    session: &Arc<Session>,
    attempts: &[Arc<Attempt>],
    wishes: &[lock_core::Wish],
) -> Result<Option<Vec<(Instant, u64)>>> {
    let Some((_, caller)) = wishes.first() else { return Ok(Some(Vec::new())) };
    let limit =
        attempts.iter().map(|attempt| attempt.ttl).min().unwrap_or_default().min(limits::TRY);
    let enter = Box::pin(async {
        let call = call("acquire", Rank::Ask, attempts, Clock::Boot.now() + limit, caller);
        ask(session, attempts, call, |script: Script| script.acquire_all(wishes, session.id)).await
    });
    let passed = entrances(session, attempts);
    match alone(session, attempts, limit, caller, passed, enter).await? {
        Some(Reply { sent, rows, .. }) => granted(session, attempts, sent, &rows),
        None => Ok(None),
    }
}

/// Passes the entrance of each name, as a single lock's attempt does, in one order for all sets.
async fn entrances(session: &Session, attempts: &[Arc<Attempt>]) -> Vec<OwnedMutexGuard<()>> {
    let entrance = |attempt: &Arc<Attempt>| (attempt.name.clone(), session.entrance(&attempt.name));
    let entrances: BTreeMap<_, _> = attempts.iter().map(entrance).collect();
    let mut passed = Vec::with_capacity(entrances.len());
    for entrance in entrances.into_values() {
        passed.push(entrance.lock_owned().await);
    }
    passed
}

/// Grants all attempts or none. If only some of them are there, the others were removed.
fn granted(
    session: &Arc<Session>,
    attempts: &[Arc<Attempt>],
    sent: Instant,
    rows: &[Row],
) -> Result<Option<Vec<(Instant, u64)>>> {
    if rows.is_empty() {
        return Ok(None);
    }
    let rows: HashMap<_, _> = rows.iter().map(|row| (row.attempt, row)).collect();
    let granted = attempts.iter().map(|attempt| {
        let row = rows.get(&attempt.id).filter(|row| !row.left.is_zero())?;
        Some((row.confirmed(sent, attempt.ttl), row.token))
    });
    let granted = granted.collect::<Option<_>>().ok_or_else(|| {
        session.remove_later(attempts.to_vec());
        Error::place_lost(session.dialect().store())
    });
    granted.map(Some)
}
