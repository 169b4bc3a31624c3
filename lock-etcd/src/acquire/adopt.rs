//! Adopting a lock that another process has left.

use std::sync::Arc;

use etcd_client::{Compare, CompareOp, Txn, TxnOp};
use lock_core::{Attempt, Clock, Error, Kind, LossReason, Request, Result, Ticket, Wait};

use crate::{
    acquire::{detach::Left, enter::Attempted},
    error::{FailureKind, STORE},
    layout::{keys::Role, note},
    lease::EtcdLease,
    session::{
        attempt::{OwnEntry, give_up},
        leftover::Stake,
        store::Store,
    },
    wire::{
        leases,
        requests::{Entered, Guard, put, stands},
    },
};

/// One attempt to adopt. It is sent as an attempt to acquire is, until its result is known.
pub(crate) async fn adopt(
    store: &Arc<Store>,
    request: &Request,
    attempt: &Attempt,
    ticket: &Ticket,
) -> Result<EtcdLease> {
    let (queue, left) = (store.layout.queue(&request.name)?, Left::read(ticket.place())?);
    let key: Arc<str> = [&*queue, &left.suffix].concat().into();
    let began = Clock::Boot.now();
    loop {
        let (session, _room) = store.sessions.get(request.ttl, Wait::Try, attempt, began).await?;
        let role = Role::Ours(Kind::Exclusive);
        let mut entry = OwnEntry::new(store, session.clone(), queue.clone(), (role, attempt.id()));
        entry.key = key.clone();
        // A token at or below the floor is that of no entry. etcd is asked all the same: the
        // session may be outdated.
        let revision = session.floor.revision(ticket.token()).unwrap_or(-1);
        let note = note::write(&request.holder, attempt.id(), &session.floor);
        let txn = |guard: Guard<'_>| {
            let unchanged = Compare::mod_revision(&*key, CompareOp::Equal, left.modified);
            Txn::new()
                .when([guard.compare(), stands(&key, revision), unchanged])
                .and_then([put(&key, session.lease, &note)])
                .or_else([guard.read(), TxnOp::get(&*key, None)])
        };
        let sent = Clock::Boot.now();
        let error = match entry.send(request, attempt, began, txn).await {
            Ok(Attempted::Entered(_)) => {
                entry.set_stake(Stake::Entry(revision));
                end_lease(store, left.lease);
                let (header, before) = (entry.header, Vec::new());
                let alone = Entered { header, revision, before };
                let held = entry.settle(alone, request, attempt, sent).await;
                return held.map_err(|(mut entry, error)| {
                    // The lock has gone with the session.
                    entry.abandon(None);
                    match entry.session.loss() {
                        Some(reason) if !error.is_closed() => lost(request, reason),
                        _ => error,
                    }
                });
            }
            Ok(Attempted::Taken(found)) => lost(
                request,
                match found.first() {
                    Some(found) if found.revision == revision => LossReason::Adopted,
                    _ => LossReason::TicketOver,
                },
            ),
            Err(failure) if failure.kind == FailureKind::Outdated => {
                entry.janitor().retire();
                entry.remove(None).await?;
                continue;
            }
            // It was not sent. After a sending, another session would find its own attempt's write,
            // and take it for another client's.
            Err(failure)
                if failure.kind == FailureKind::SessionEnded && entry.stake == Stake::Nothing =>
            {
                continue;
            }
            Err(_) if store.sessions.check_open().is_err() => Error::closed(STORE),
            Err(failure) => failure.into_error("adopt", entry.stake != Stake::Nothing),
        };
        return Err(give_up(entry, attempt, error).await);
    }
}

/// Ends the lease that the lock lived by meanwhile.
fn end_lease(store: &Arc<Store>, lease: i64) {
    let store = store.clone();
    store.runtime.clone().spawn(async move {
        let give_up = || store.closed.is_cancelled();
        // If it fails, the lease ends by itself.
        drop(leases::revoke(&store.connection, lease, &give_up).await);
    });
}

fn lost(request: &Request, reason: LossReason) -> Error {
    Error::Lost { name: request.name.clone(), reason }
}
