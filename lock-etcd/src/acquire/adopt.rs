//! Adopting a lock that another process has left.

use std::sync::Arc;

use lock_core::{Attempt, Clock, Error, Instant, Kind, LossReason, Request, Result, Ticket};

use crate::{
    acquire::{
        detach::Left,
        hold::Hold,
        rewrite::{Rewrite, Rewritten},
    },
    config::whole_seconds,
    layout::keys::Role,
    lease::EtcdLease,
    session::{attempt::OwnEntry, leftover::Stake, store::Store},
    wire::leases,
};

/// One attempt to adopt.
pub(crate) async fn adopt(
    store: &Arc<Store>,
    request: &Request,
    attempt: &Attempt,
    ticket: &Ticket,
) -> Result<EtcdLease> {
    let (queue, left) = (store.layout.queue(&request.name)?, Left::read(ticket.place())?);
    whole_seconds("ttl", request.ttl)?;
    let began = Clock::Boot.now();
    let until = began + request.ttl;
    let key: Arc<str> = [&*queue, &left.suffix].concat().into();
    loop {
        let session = store.sessions.get(request.ttl, attempt, began).await?;
        if !session.is_live() || session.is_retired() {
            continue;
        }
        let role = Role::Ours(Kind::Exclusive);
        let mut entry = OwnEntry::new(store, session.clone(), queue.clone(), (role, attempt.id()));
        entry.key = key.clone();
        // A token at or below the floor is that of no entry. etcd is asked all the same: the
        // session may be outdated.
        let revision = session.floor.revision(ticket.token()).unwrap_or(-1);
        let rewrite = Rewrite {
            key: key.clone(),
            revision,
            modified: left.modified,
            lease: session.lease,
            holder: request.holder.clone(),
            attempt: attempt.id(),
            session: session.clone(),
        };
        let sent = Clock::Boot.now();
        let over =
            || attempt.is_cancelled() || session.ended.is_cancelled() || Clock::Boot.now() >= until;
        let mut in_doubt = false;
        match rewrite.send(store, &mut in_doubt, &over).await {
            Ok(Rewritten::Done(modified, header)) => {
                entry.answered(Stake::Entry(revision), header);
                end_lease(store, left.lease);
                return hold(entry, request, attempt, (revision, modified), sent);
            }
            Ok(Rewritten::Other) => return Err(lost(request, LossReason::Adopted)),
            Ok(Rewritten::Gone) => return Err(lost(request, LossReason::TicketOver)),
            Ok(Rewritten::Outdated) => entry.janitor().retire(),
            Err(failure) => {
                if in_doubt {
                    undo(entry, rewrite);
                }
                store.sessions.check_open()?;
                return Err(failure.into_error("adopt", in_doubt));
            }
        }
    }
}

fn hold(
    mut entry: OwnEntry,
    request: &Request,
    attempt: &Attempt,
    (revision, modified): (i64, i64),
    sent: Instant,
) -> Result<EtcdLease> {
    let Some(validity) = entry.session.grant(request, attempt.id(), sent) else {
        // The entry has gone with the session.
        entry.abandon(None);
        entry.store.sessions.check_open()?;
        return Err(lost(request, entry.session.loss().unwrap_or(LossReason::SessionEnded)));
    };
    let hold = Hold::adopted(entry, revision, modified);
    hold.watch(&validity);
    Ok(EtcdLease::new(hold, request, attempt.id(), validity))
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

/// Undoes an unanswered adoption in the background, so that no entry lives as long as the session.
/// If etcd refuses, the session ends with its last attempt, and the entry with it.
fn undo(mut entry: OwnEntry, rewrite: Rewrite) {
    // Until it is undone, the session's end must take it along.
    entry.set_stake(Stake::Doubtful(None));
    entry.store.runtime.clone().spawn(async move {
        let give_up = || entry.session.ended.is_cancelled();
        match rewrite.undo(&entry.store, &give_up).await {
            _ if give_up() => {}
            Ok(()) => entry.set_stake(Stake::Nothing),
            Err(_) => entry.janitor().retire(),
        }
    });
}

fn lost(request: &Request, reason: LossReason) -> Error {
    Error::Lost { name: request.name.clone(), reason }
}
