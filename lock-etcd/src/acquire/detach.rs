//! Leaving a lock to another process, and adopting a lock that another process has left.
//!
//! All locks of a client live by leases that they share. Leaving a lock writes its key once more
//! with a lease of its own. The key keeps its create revision, which is its place in line and its
//! token. The client that adopts the lock writes it with the lease of its own session. Each of the
//! two transactions compares the key's last modification, so each is done once, and a late one does
//! nothing. Each also compares the key of the client's session, which a raise of the token floor
//! deletes, and an adoption its epoch, as each attempt to acquire. So an entry from before the raise
//! keeps its owner, and the raise finds and ends it.

use std::{sync::Arc, time::Duration};

use etcd_client::{Compare, CompareOp, Txn, TxnOp};
use lock_core::{
    Attempt, Clock, Error, Kind, LossReason, Request, Result, Ticket, Wait,
    keep::ticket::unreadable,
};
use uuid::Uuid;

use crate::{
    acquire::enter::Attempted,
    error::{Failure, FailureKind, STORE},
    layout::{
        keys::{Role, role},
        note,
    },
    lease::EtcdLease,
    session::{
        Stake,
        attempt::{Hold, OwnEntry, give_up},
        store::Store,
    },
    wire::{
        connection::GiveUp,
        leases,
        requests::{Entered, Guard, commit, firsts, put, revision, stands},
    },
};

/// A lock that was left: the part of a ticket that says where it stands.
#[derive(Clone, Debug, Eq, PartialEq)]
pub(crate) struct Left {
    /// The part of its key after the queue.
    suffix: String,
    /// The lease that it lives by.
    lease: i64,
    /// Its last modification.
    modified: i64,
}

impl Left {
    pub(crate) fn place(&self) -> String {
        format!("{}/{:x}/{}", self.suffix, self.lease, self.modified)
    }

    /// Fails for text that [`place`](Self::place) did not write.
    fn read(place: &str) -> Result<Self> {
        let parse = || {
            let mut parts = place.split('/');
            let suffix = parts.next()?.to_owned();
            let lease = i64::from_str_radix(parts.next()?, 16).ok()?;
            let modified = parts.next()?.parse().ok().filter(|revision| *revision > 0)?;
            let ours = role(suffix.as_bytes()) == Role::Ours(Kind::Exclusive);
            (ours && parts.next().is_none()).then_some(Self { suffix, lease, modified })
        };
        parse().ok_or_else(|| unreadable(STORE, place, "KEY/LEASE/REVISION"))
    }
}

impl Hold {
    /// Leaves the entry to the client that adopts it. `holder`: its description until then. Returns
    /// where it stands. Returns `None` if it does not stand any more, or if the token floor was
    /// raised since it was made: then it is removed.
    pub(crate) async fn detach(
        &mut self,
        holder: &Arc<str>,
        ttl: Duration,
        in_doubt: &mut bool,
        give_up: GiveUp<'_>,
    ) -> Result<Option<Left>, Failure> {
        let OwnEntry { store, session, queue, key, modified, .. } = &self.entry;
        let (suffix, attempt) = (key[queue.len()..].to_owned(), Uuid::new_v4());
        // It is not renewed.
        let granted = leases::grant(&store.connection, ttl, |_| !give_up()).await;
        let (lease, ..) = granted.map_err(Failure::without_effect)?;
        let unchanged = Compare::mod_revision(&**key, CompareOp::Equal, *modified);
        let txn = Txn::new()
            .when([stands(key, self.revision), unchanged, session.stands(&store.layout)])
            .and_then([put(key, lease, &note::write(holder, attempt, &session.floor))])
            .or_else([
                TxnOp::get(&**key, None),
                TxnOp::get(store.layout.session(session.lease), None),
            ]);
        let answer = commit(&store.connection, &txn, in_doubt, give_up).await?;
        let modified = match answer.succeeded() {
            true => revision(answer.header())?,
            false => {
                let mut found = firsts(answer);
                let (entry, session) = (found.next().flatten(), found.next().flatten());
                // An earlier sending may have written it, even if the floor was raised since.
                let left = entry.filter(|kv| note::attempt(&kv.value) == Some(attempt));
                let Some(left) = left else {
                    if session.is_none() {
                        self.entry.abandon();
                    }
                    return Ok(None);
                };
                left.mod_revision
            }
        };
        self.entry.give_away();
        Ok(Some(Left { suffix, lease, modified }))
    }
}

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
        let mut entry = OwnEntry::new(store, session.clone(), queue.clone(), role, attempt.id());
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
                let alone = Entered { header: entry.header, revision, before: Default::default() };
                let held = entry.settle(alone, request, attempt, sent).await;
                return held.map_err(|(mut entry, error)| {
                    // The lock has gone with the session.
                    entry.abandon();
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
                entry.remove().await?;
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
fn end_lease(store: &Store, lease: i64) {
    let connection = store.connection.clone();
    store.runtime.spawn(async move {
        // If it fails, the lease ends by itself.
        drop(leases::revoke(&connection, lease, &|| false).await);
    });
}

fn lost(request: &Request, reason: LossReason) -> Error {
    Error::Lost { name: request.name.clone(), reason }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_place_is_read_as_it_is_written() {
        let left = Left { suffix: "6a7b.0".to_owned(), lease: 0x7f, modified: 12 };
        assert_eq!(left.place(), "6a7b.0/7f/12");
        assert_eq!(Left::read(&left.place()).unwrap(), left);
        for odd in ["", "6a7b.0", "6a7b.0/7f", "6a7b.0/7f/0", "6a7b.0/7f/12/", "x/7f/12"] {
            Left::read(odd).unwrap_err();
        }
        for other in ["6a7b.0.v/7f/12", "6a7b.0.r/7f/12", "6a7b.0.s/7f/12"] {
            Left::read(other).unwrap_err();
        }
    }
}
