//! One attempt, from the request to the grant.

pub(crate) mod adopt;
pub(crate) mod convert;
pub(crate) mod detach;
mod enter;
pub(crate) mod hold;
mod refusal;
mod rewrite;
pub(crate) mod set;
mod settle;

use std::sync::Arc;

use lock_core::{Attempt, Clock, Request, Result, Wait, queue};

use crate::{
    acquire::refusal::{contended, refusal},
    error::FailureKind,
    layout::keys::Role,
    lease::EtcdLease,
    session::{
        attempt::{OwnEntry, give_up},
        leftover::Stake,
        store::Store,
    },
};

/// One attempt, from the request to the grant.
pub(crate) async fn acquire(
    store: &Arc<Store>,
    request: &Request,
    attempt: &Attempt,
) -> Result<EtcdLease> {
    let queue = store.layout.queue(&request.name)?;
    let role = match (&request.value, request.kind) {
        (Some(_), queue::Kind::Exclusive) => Role::Candidate,
        (_, kind) => Role::Ours(kind),
    };
    let (mut taken, began) = (Vec::new(), Clock::Boot.now());
    let until = || store.connection.patience(began, request.ttl);
    loop {
        let session = store.sessions.get(request.ttl, attempt, began).await?;
        let turn = store.connection.turns.acquire(request.wait, attempt, until).await;
        let turn = turn.map_err(|failure| failure.into_error("acquire", false))?;
        if !session.is_live() || session.is_retired() {
            continue;
        }
        let mut entry = OwnEntry::new(store, session.clone(), queue.clone(), role);
        let asked = Clock::Boot.now();
        let entered = entry.enter(request, attempt, began).await;
        drop(turn);
        let error = match entered {
            Ok(Ok(entered)) => match entry.settle(entered, request, attempt, asked).await {
                Ok(lease) => return Ok(lease),
                Err((entry, error)) => {
                    if let Stake::Entry(revision) = entry.stake {
                        store.watcher.side().leave(&entry.queue, revision, &entry.key);
                    }
                    return Err(Box::pin(give_up(entry, attempt, error)).await);
                }
            },
            Ok(Err(found)) if request.wait == Wait::Try => {
                refusal(request, &found).unwrap_or_else(|| contended(request))
            }
            // Another client has made the key. This attempt takes the next one.
            Ok(Err(_)) => {
                taken.push(entry);
                continue;
            }
            Err(failure) if failure.kind == FailureKind::Overtaken => {
                entry.remove(None).await?;
                continue;
            }
            // The lease was gone before this request, or takes the new entry with it: begin again.
            Err(failure) if failure.kind == FailureKind::LeaseGone => {
                store.sessions.gone_unless_ended(&session);
                continue;
            }
            Err(failure) => failure.into_error("acquire", entry.stake != Stake::Nothing),
        };
        return Err(Box::pin(give_up(entry, attempt, error)).await);
    }
}
