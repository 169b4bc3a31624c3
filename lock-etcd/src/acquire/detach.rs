//! Leaving a lock to another process, and taking up one that was left.
//!
//! All locks of a client live by leases that they share. The key of one that is left is written once
//! more with a lease of its own; that keeps its create revision, which is its place in line and its
//! token. Who adopts the lock writes it with the lease of its own session. Each of the two transactions
//! asks for the key's last modification, so each is done once, and one that comes late does nothing.
//! Each also asks for the token floor's record: what is older than that stays whose it was, so that
//! whoever has raised the floor finds and ends it.

use std::sync::Arc;

use etcd_client::{Compare, CompareOp, Txn, TxnOp, TxnResponse};
use lock_core::{
    Attempt, Clock, Error, Instant, Kind as LockKind, LossReason, Request, Result, Term, Ticket,
    deadline::safe_until,
};
use uuid::Uuid;

use crate::{
    acquire::{Claim, Stake, hold::Hold},
    config::whole_seconds,
    error::{Failure, Kind},
    layout::{
        floor::Record,
        keys::{Role, role},
        note,
    },
    lease::EtcdLease,
    session::{Session, pool::new_lease, store::Store},
    wire::{
        answer::{Header, ranges, revision},
        backoff::Pause,
        connection::{Connection, Insisted},
        leases::{self, send_grant},
        reads,
        removals::{delete_entry, remove_written},
        requests::{put, send_txn, stands},
    },
};

/// Where a lock stands that was left: what a ticket says of it.
#[derive(Clone, Debug, Eq, PartialEq)]
pub(crate) struct Left {
    /// What follows the queue in its key.
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

    /// # Errors
    ///
    /// [`Error::InvalidOption`] for what [`place`](Self::place) did not write.
    fn read(place: &str) -> Result<Self> {
        let parse = || {
            let mut parts = place.split('/');
            let suffix = parts.next()?.to_owned();
            let lease = i64::from_str_radix(parts.next()?, 16).ok()?;
            let modified = parts.next()?.parse().ok().filter(|revision| *revision > 0)?;
            let ours = role(suffix.as_bytes()) == Role::Ours(LockKind::Exclusive);
            (ours && parts.next().is_none()).then_some(Self { suffix, lease, modified })
        };
        parse().ok_or_else(|| Error::InvalidOption {
            option: "ticket".to_owned(),
            value: place.chars().take(8).collect(),
            allowed: "the place in a ticket of etcd is KEY/LEASE/REVISION".to_owned(),
        })
    }
}

/// An entry that is to be written once more, by or for another attempt.
struct Rewrite<'a> {
    key: &'a str,
    /// Its create revision.
    revision: i64,
    /// Its last modification.
    modified: i64,
    lease: i64,
    note: &'a [u8],
    /// Whose note this is.
    attempt: Uuid,
    /// The token floor's key, and what it must have.
    floor: (&'a str, &'a Record),
}

/// What became of it.
enum Rewritten {
    /// Written at this revision, now or by an earlier sending.
    Done(i64, Header),
    /// Another attempt has written it.
    Other,
    Gone,
    /// It did nothing: the token floor is another one.
    Raised(Record),
}

impl Rewrite<'_> {
    /// Whether the entry is as it was seen.
    fn compares(&self) -> [Compare; 2] {
        let unchanged = Compare::mod_revision(self.key, CompareOp::Equal, self.modified);
        [stands(self.key, self.revision), unchanged]
    }

    async fn send(
        &self,
        connection: &Connection,
        give_up: impl Fn() -> bool,
    ) -> Insisted<Rewritten> {
        let (key, record) = self.floor;
        let txn = Txn::new()
            .when([self.compares(), record.compare_exactly(key)].concat())
            .and_then([put(self.key, self.lease, self.note)])
            .or_else(self.reads());
        let insisted = connection.insist(give_up, |member| send_txn(member, &txn)).await;
        let result = insisted.result.and_then(|answer| match answer.succeeded() {
            true => Ok(Rewritten::Done(revision(&answer)?, Header::of(answer.header()))),
            false => self.found(answer),
        });
        Insisted { result, ambiguous: insisted.ambiguous }
    }

    fn reads(&self) -> [TxnOp; 2] {
        [TxnOp::get(self.key, None), TxnOp::get(self.floor.0, None)]
    }

    fn found(&self, answer: TxnResponse) -> Result<Rewritten, Failure> {
        let header = Header::of(answer.header());
        let mut found = ranges(answer).map(|range| range.kvs.into_iter().next());
        let (entry, floor) = (found.next().flatten(), found.next().flatten());
        let entry = entry.filter(|kv| kv.create_revision == self.revision);
        // It may be written also if the floor was raised since.
        if let Some(kv) = &entry
            && note::attempt(&kv.value) == Some(self.attempt)
        {
            return Ok(Rewritten::Done(kv.mod_revision, header));
        }
        let floor = Record::read(floor.as_ref())?;
        Ok(match entry {
            _ if floor != *self.floor.1 => Rewritten::Raised(floor),
            None => Rewritten::Gone,
            Some(_) => Rewritten::Other,
        })
    }

    /// Removes the entry if it is as it was, or as this has written it: after that, nothing that was
    /// sent for it does anything.
    async fn undo(&self, connection: &Connection, give_up: impl Fn() -> bool) {
        let txn =
            Txn::new().when(self.compares()).and_then(delete_entry(self.key)).or_else(self.reads());
        let answer = connection.insist(&give_up, |member| send_txn(member, &txn)).await;
        let Ok(answer) = answer.result else { return };
        if !answer.succeeded()
            && let Ok(Rewritten::Done(modified, _)) = self.found(answer)
        {
            let remove = remove_written(self.key.as_bytes(), modified);
            drop(connection.insist(&give_up, |member| send_txn(member, &remove)).await.result);
        }
    }
}

impl Hold {
    /// Leaves the entry to whoever adopts it. `holder`: what it says about itself until then. Answers
    /// where it stands; `None` if it does not stand any more, or the token floor was raised since it
    /// was made: it is removed then.
    pub(crate) async fn detach(
        &mut self,
        holder: &str,
        ttl: std::time::Duration,
        give_up: impl Fn() -> bool,
    ) -> Insisted<Option<Left>> {
        let store = self.claim.store.clone();
        let lease = match fresh_lease(&store, ttl, &give_up).await {
            Ok(lease) => lease,
            Err(failure) => return Insisted { result: Err(failure), ambiguous: false },
        };
        let (key, attempt) = (self.claim.key.clone(), Uuid::new_v4());
        let (mut floor, mut ambiguous) = (store.floor.known(), false);
        let rewritten = loop {
            if floor.is_after(self.revision) {
                self.abandon();
                break Ok(Rewritten::Gone);
            }
            let note = note::note(holder, attempt, &floor);
            let rewrite = Rewrite {
                key: &key,
                revision: self.revision,
                modified: self.modified,
                lease,
                note: &note,
                attempt,
                floor: (&store.floor.key, &floor),
            };
            let insisted = rewrite.send(&store.connection, &give_up).await;
            ambiguous |= insisted.ambiguous;
            match insisted.result {
                Ok(Rewritten::Raised(record)) => floor = store.floor.learn(record),
                result => break result,
            }
        };
        let result = rewritten.map(|rewritten| match rewritten {
            Rewritten::Done(modified, _) => {
                let suffix = key[self.claim.queue.len()..].to_owned();
                self.claim.hand_over(self.revision);
                Some(Left { suffix, lease, modified })
            }
            Rewritten::Other | Rewritten::Gone | Rewritten::Raised(_) => None,
        });
        Insisted { result, ambiguous }
    }
}

/// A lease of its own for one lock; nobody renews it. With another id each time: so what an unanswered
/// request makes is nobody's, and ends by itself.
async fn fresh_lease(
    store: &Store,
    ttl: std::time::Duration,
    give_up: impl Fn() -> bool,
) -> Result<i64, Failure> {
    let mut pause = Pause::new();
    loop {
        let lease = new_lease();
        let grant = store.connection.call(|member| send_grant(member, lease, ttl.as_secs()));
        match grant.await {
            Ok(_) => return Ok(lease),
            Err(failure) if failure.kind.is_passing() && !give_up() => {}
            Err(failure) => return Err(failure.without_effect()),
        }
        pause.wait().await;
    }
}

/// One attempt to adopt.
///
/// # Errors
///
/// As [`DistributedLock::adopt`](lock_core::DistributedLock::adopt).
pub(crate) async fn adopt(
    store: &Arc<Store>,
    request: &Request,
    attempt: &Attempt,
    ticket: &Ticket,
) -> Result<EtcdLease> {
    let (queue, left) = (store.layout.queue(&request.name)?, Left::read(ticket.place())?);
    whole_seconds("ttl", request.ttl)?;
    let mut floor = store.floor.known();
    let began = Clock::Boot.now();
    let until = began + request.ttl;
    let key: Arc<str> = [&*queue, &left.suffix].concat().into();
    loop {
        let session = store.sessions.get(request.ttl, attempt, began).await?;
        if !session.is_live() || session.is_retired() {
            continue;
        }
        let mut claim =
            Claim::new(store, session.clone(), queue.clone(), Role::Ours(LockKind::Exclusive));
        claim.key = key.clone();
        let Some(token) = floor.revision(ticket.token()) else {
            // What is known here of the floor may be old, or of a time that a backup has undone.
            let asked = reads::floor(&store.connection, &store.floor).await;
            let (now, _) = asked.map_err(|failure| failure.into_error("adopt", false))?;
            if now == floor {
                return Err(lost(request, LossReason::TicketOver));
            }
            floor = now;
            continue;
        };
        let note = note::note(&request.holder, attempt.id(), &floor);
        let rewrite = Rewrite {
            key: &key,
            revision: token,
            modified: left.modified,
            lease: session.lease,
            note: &note,
            attempt: attempt.id(),
            floor: (&store.floor.key, &floor),
        };
        let sent = Clock::Boot.now();
        let over =
            || attempt.is_cancelled() || session.ended.is_cancelled() || Clock::Boot.now() >= until;
        let Insisted { result, ambiguous } = rewrite.send(&store.connection, over).await;
        match result {
            Ok(Rewritten::Done(modified, header)) => {
                claim.set_stake(Stake::Entry(token));
                (claim.header, claim.floor) = (header, floor.above());
                end_lease(store, left.lease);
                return hold(claim, request, attempt, (token, modified), sent);
            }
            Ok(Rewritten::Other) => return Err(lost(request, LossReason::Adopted)),
            Ok(Rewritten::Gone) => return Err(lost(request, LossReason::TicketOver)),
            // The token may count from it, or the lock is older, and is about to be ended.
            Ok(Rewritten::Raised(record)) => floor = store.floor.learn(record),
            // What was sent with it did nothing, or has ended with it.
            Err(failure) if failure.kind == Kind::LeaseGone => store.sessions.gone(&session),
            Err(failure) => {
                if ambiguous {
                    undo(store, &session, claim, (token, left.modified), attempt.id());
                }
                store.sessions.check_open()?;
                return Err(failure.into_error("adopt", ambiguous));
            }
        }
    }
}

fn hold(
    mut claim: Claim,
    request: &Request,
    attempt: &Attempt,
    (token, modified): (i64, i64),
    sent: Instant,
) -> Result<EtcdLease> {
    let cap = match request.term {
        Term::Fixed => safe_until(sent, request.ttl),
        _ => Instant::NEVER,
    };
    let Some((validity, slot)) = claim.session.hold(&request.name, cap) else {
        // The entry has gone with the session.
        claim.abandon(None);
        claim.store.sessions.check_open()?;
        return Err(lost(request, LossReason::SessionEnded));
    };
    let mut hold = Hold::adopted(claim, token, modified);
    hold.watch(&validity);
    Ok(EtcdLease::new(hold, request, attempt.id(), validity, slot))
}

/// The lease by which the lock lived meanwhile is of no use any more.
fn end_lease(store: &Arc<Store>, lease: i64) {
    let store = store.clone();
    store.runtime.clone().spawn(async move {
        let give_up = || store.closed.is_cancelled();
        // If it fails, the lease ends by itself.
        drop(leases::revoke(&store.connection, lease, give_up).await);
    });
}

/// Makes sure in the background that an adoption without an answer leaves nothing that lives as long as
/// its session.
fn undo(
    store: &Arc<Store>,
    session: &Arc<Session>,
    mut claim: Claim,
    (revision, modified): (i64, i64),
    attempt: Uuid,
) {
    // As long as it is not undone, the session's end is to take it along.
    claim.set_stake(Stake::Doubtful(None));
    let (store, session) = (store.clone(), session.clone());
    store.runtime.clone().spawn(async move {
        let (key, lease) = (claim.key.clone(), session.lease);
        let floor = store.floor.known();
        let floor = (&*store.floor.key, &*floor);
        let rewrite = Rewrite { key: &key, revision, modified, lease, note: b"", attempt, floor };
        rewrite.undo(&store.connection, || session.ended.is_cancelled()).await;
        if !session.ended.is_cancelled() {
            claim.set_stake(Stake::Nothing);
        }
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
