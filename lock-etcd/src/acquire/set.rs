//! Several locks by one transaction.

use std::sync::Arc;

use futures_util::future::{join_all, try_join_all};
use lock_core::{Clock, Error, Instant, Kind, Result, Wait, Wish, only_exclusive};

use crate::{
    acquire::enter::{Attempted, contended},
    error::{Failure, FailureKind, STORE},
    layout::{keys::Role, note},
    lease::EtcdLease,
    session::{
        Session, Stake,
        attempt::{OwnEntry, give_up},
        store::Store,
    },
    wire::requests::{self, Entered, Guard, NewEntry},
};

/// Most names of a set. etcd counts the comparisons of a transaction, too, and takes 128 by default
/// (`--max-txn-ops`); one of them is not about a name.
pub(crate) const MOST: usize = 127;

/// Takes all locks if all queues are empty.
pub(crate) async fn try_all(store: &Arc<Store>, wishes: &[Wish]) -> Result<Option<Vec<EtcdLease>>> {
    let Some((request, caller)) = wishes.first() else { return Ok(Some(Vec::new())) };
    only_exclusive(STORE, wishes)?;
    let queue = |(request, _): &Wish| store.layout.queue(&request.name);
    let queues = wishes.iter().map(queue).collect::<Result<Vec<_>>>()?;
    let began = Clock::Boot.now();
    loop {
        let (session, room) = store.sessions.get(request.ttl, Wait::Try, caller, began).await?;
        let role = Role::Ours(Kind::Exclusive);
        let entry = |(queue, (_, attempt)): (&Arc<str>, &Wish)| {
            OwnEntry::new(store, session.clone(), queue.clone(), role, attempt.id())
        };
        let mut entries: Vec<_> = queues.iter().zip(wishes).map(entry).collect();
        let asked = Clock::Boot.now();
        let entered = enter(&mut entries, wishes, &session, began).await;
        drop(room);
        let error = match entered {
            Ok(Some(revision)) => {
                return Box::pin(hold(entries, wishes, revision, asked)).await.map(Some);
            }
            Ok(None) => None,
            Err(failure) if failure.kind == FailureKind::Outdated => {
                entries[0].janitor().retire();
                // All of them: a removal that is dropped leaves its entry to nobody.
                let removed = join_all(entries.iter_mut().map(|entry| entry.remove())).await;
                removed.into_iter().collect::<Result<()>>()?;
                continue;
            }
            // The end of the session takes the new entries with it.
            Err(failure) if failure.kind == FailureKind::SessionEnded => continue,
            Err(failure) if failure.is_too_large() => {
                let what = format!("take {} names in one transaction", wishes.len());
                Some(Error::Unsupported { store: STORE, what })
            }
            Err(failure) => Some(failure.into_error("acquire", entries[0].stake != Stake::Nothing)),
        };
        let left = entries.into_iter().zip(wishes);
        let left = left.map(|(entry, (_, attempt))| give_up(entry, attempt, contended(request)));
        join_all(left).await;
        return error.map_or(Ok(None), Err);
    }
}

/// Makes all entries. Returns their create revision; `None` if some queue is not empty.
async fn enter(
    entries: &mut [OwnEntry],
    wishes: &[Wish],
    session: &Session,
    began: Instant,
) -> Result<Option<i64>, Failure> {
    let key_of = |entry: &OwnEntry| (entry.queue.clone(), entry.key.clone());
    let keys: Vec<_> = entries.iter().map(key_of).collect();
    let note =
        |(request, attempt): &Wish| note::write(&request.holder, attempt.id(), &session.floor);
    let notes: Vec<_> = wishes.iter().map(note).collect();
    let enter = |guard: Guard<'_>| {
        let new = keys.iter().zip(&notes).map(|((queue, key), note)| {
            (&**queue, NewEntry { key, lease: session.lease, note, value: None })
        });
        requests::enter_if_free(new, None, guard)
    };
    let (request, caller) = &wishes[0];
    let entered = entries[0].send(request, caller, began, enter).await;
    let OwnEntry { stake, header, looked_up, .. } = entries[0];
    entries.iter_mut().for_each(|entry| entry.answered(stake, header));
    let revision = match entered? {
        Attempted::Entered(entered) => Some(entered.revision),
        Attempted::Taken(_) => None,
    };
    match looked_up && !look_up(entries).await? {
        true => Ok(None),
        false => Ok(revision),
    }
}

/// Looks up all entries of a set whose first sending was not answered, but whose first entry was
/// looked up: the transaction made all of them or none, and each may have been removed since.
/// Returns whether all stand.
async fn look_up(entries: &mut [OwnEntry]) -> Result<bool, Failure> {
    for entry in &mut entries[1..] {
        entry.set_stake(Stake::Doubtful(None));
    }
    let session = entries[0].session.clone();
    let give_up = || session.ended.is_cancelled();
    let found = try_join_all(entries[1..].iter().map(|entry| entry.find(&give_up))).await?;
    for (entry, found) in entries[1..].iter_mut().zip(found) {
        entry.set_stake(found.map_or(Stake::Nothing, |(created, _)| Stake::Entry(created)));
    }
    Ok(entries.iter().all(|entry| entry.stake != Stake::Nothing))
}

/// Makes leases of entries that are alone in their queues. If one fails, the others are given back.
async fn hold(
    entries: Vec<OwnEntry>,
    wishes: &[Wish],
    revision: i64,
    asked: Instant,
) -> Result<Vec<EtcdLease>> {
    let (mut leases, mut failed) = (Vec::with_capacity(entries.len()), None);
    for (entry, (request, attempt)) in entries.into_iter().zip(wishes) {
        let alone = Entered { header: entry.header, revision, before: Default::default() };
        match entry.settle(alone, request, attempt, asked).await {
            Ok(lease) => leases.push(lease),
            Err((entry, error)) => failed = Some(give_up(entry, attempt, error).await),
        }
    }
    failed.map_or(Ok(leases), Err)
}
