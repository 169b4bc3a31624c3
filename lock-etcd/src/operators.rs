//! Operators' calls: names in use, holders and waiters, the reason for a failed wait, revocation,
//! marks of work, and the token floor.

use std::{
    collections::{BTreeMap, BTreeSet, HashMap},
    time::Duration,
};

use etcd_client::{
    Compare, CompareOp, DeleteOptions, GetOptions, SortOrder, SortTarget, Txn, TxnOp,
    proto::PbKeyValue,
};
use futures_util::future::{join, join_all, try_join_all};
use lock_core::{
    Clock, Diagnosis, Entry, FencingToken, Holder, LockName, Mark, Result, TokenFloor, keep::marks,
    wall_clock,
};
use uuid::Uuid;

use crate::{
    error::Failure,
    layout::{
        floor::Record,
        keys::{self, Role, queue_of, role},
        listing::{QueueEntry, Standing, is_passed_on},
        note,
    },
    session::store::Store,
    wire::{
        connection::{Connection, Word},
        leases, reads, removals,
        requests::{self, commit, firsts},
    },
};

/// For how many holders of a name the history is read.
const DATED: usize = 16;

/// How many of the first keys of a queue are read to find the first entry: marks and signals stand
/// among them.
const FIRST: i64 = 4;

/// For how long a request to raise the token floor, or to clear a mark, is sent again.
const PATIENCE: Duration = Duration::from_secs(5);

/// Returns holders and waiters in order. Only etcd knows how long a holder's lease lasts.
pub(crate) async fn inspect(store: &Store, name: &LockName) -> Result<Vec<Entry>> {
    let (queue, connection) = (store.layout.queue(name)?, &store.connection);
    let failed = |failure: Failure| failure.into_error("inspect", false);
    let standing = reads::inspect(connection, &queue).await.map_err(failed)?;
    let mut entries: Vec<_> = standing.iter().map(note::read).collect();
    Entry::judge(&mut entries);
    let held = entries.iter().zip(&standing).filter(|(entry, _)| entry.holds);
    let leases: BTreeSet<_> =
        held.map(|(_, standing)| standing.lease).filter(|id| *id != 0).collect();
    // At the same time: many readers have many leases.
    let left = leases.iter().map(|lease| leases::ttl_left(connection, *lease));
    let held = entries.iter().zip(&standing).take_while(|(entry, _)| entry.holds);
    let held = held.take(DATED).map(|(_, standing)| standing.entry.revision);
    let at_once = held.map(|revision| reads::entered_at_once(connection, &queue, revision));
    let (left, at_once) = join(try_join_all(left), join_all(at_once.collect::<Vec<_>>())).await;
    let left: HashMap<_, _> = leases.iter().zip(left.map_err(failed)?).collect();
    for (entry, standing) in entries.iter_mut().zip(&standing).filter(|(entry, _)| entry.holds) {
        entry.ttl_left = left.get(&standing.lease).copied().flatten();
    }
    for (entry, _) in entries.iter_mut().zip(at_once).filter(|(_, at_once)| *at_once) {
        entry.holder.granted_at = entry.holder.queued_at;
    }
    Ok(entries)
}

/// Returns the first holder in line, by one read of its entry, and the places of the attempts as
/// far as this client knows them.
pub(crate) async fn diagnose(
    store: &Store,
    name: &LockName,
    attempts: &[Uuid],
) -> Result<Diagnosis> {
    let queue = store.layout.queue(name)?;
    let (first, places) = store.watcher.names().standing(&queue, attempts);
    let connection = &store.connection;
    let known = match first {
        Some(first) => known(connection, &queue, &first).await,
        None => Ok(None),
    };
    let holder = match known {
        // Nothing is known here, or the entry is gone.
        Ok(None) => first_of(connection, &queue).await,
        known => known,
    };
    let holder = holder.map_err(|failure| failure.into_error("inspect", false))?;
    Ok(Diagnosis::new(holder, places))
}

/// Returns the holder of this entry; `None` if it is gone.
async fn known(
    connection: &Connection,
    queue: &str,
    key: &[u8],
) -> Result<Option<Holder>, Failure> {
    let role = role(key);
    let key = match role {
        Role::Candidate => keys::note(&String::from_utf8_lossy(key)).into_bytes(),
        _ => key.to_owned(),
    };
    // From the member in use, here and below: this is for the text of an error, and may be old.
    let options = GetOptions::new().with_serializable();
    let found = reads::get(connection, Word::Member, &key, &options).await?;
    let Some(kv) = found.0.kvs.into_iter().next() else { return Ok(None) };
    let revision = match role {
        Role::Foreign => return Ok(Some(Holder::default())),
        // A note was written together with the entry.
        Role::Candidate => kv.mod_revision,
        _ => kv.create_revision,
    };
    let holder = note::holder(&kv.value, revision, is_passed_on(&role, &kv));
    let at_once = reads::entered_at_once(connection, queue, revision).await;
    let granted_at = holder.queued_at.filter(|_| at_once);
    Ok(Some(holder.granted(granted_at)))
}

/// Returns the holder of the first entry of a queue. etcd reads the whole queue for it, and sends
/// only the beginning.
async fn first_of(connection: &Connection, queue: &str) -> Result<Option<Holder>, Failure> {
    let options = GetOptions::new()
        .with_prefix()
        .with_keys_only()
        .with_sort(SortTarget::Create, SortOrder::Ascend)
        .with_limit(FIRST)
        .with_serializable();
    let first = reads::get(connection, Word::Member, queue.as_bytes(), &options).await?;
    let is_entry = |kv: &PbKeyValue| role(&kv.key).kind().is_some();
    let Some(first) = first.0.kvs.into_iter().find(is_entry) else { return Ok(None) };
    let nothing = || Some(Holder::default());
    Ok(known(connection, queue, &first.key).await?.or_else(nothing))
}

/// Returns the names that have an entry and start with `start`, in order.
pub(crate) async fn names(store: &Store, start: &str) -> Result<Vec<LockName>> {
    let found = names_with(store, start, |_| true).await;
    Ok(found.map_err(|failure| failure.into_error("names", false))?.into_iter().collect())
}

/// Returns the names that start with `start` and have an entry for which `counts` returns true.
async fn names_with(
    store: &Store,
    start: &str,
    counts: impl Fn(&QueueEntry) -> bool,
) -> Result<BTreeSet<LockName>, Failure> {
    let Some((from, to)) = store.layout.names(start) else { return Ok(BTreeSet::new()) };
    let found = reads::entries(&store.connection, &from, &to).await?;
    let counting = found.entries.iter().filter(|entry| counts(entry));
    let names = counting.filter_map(|entry| store.layout.name(queue_of(&entry.key)));
    Ok(names.filter(|name| name.as_str().starts_with(start)).collect())
}

/// Removes the entry of an attempt. Returns whether there was one.
pub(crate) async fn revoke(
    store: &Store,
    name: &LockName,
    attempt: Uuid,
    patience: Duration,
) -> Result<bool> {
    let (queue, until) = (store.layout.queue(name)?, Clock::Boot.now() + patience);
    let give_up = || Clock::Boot.now() >= until;
    let failed = |failure: Failure, in_doubt| failure.into_error("revoke", in_doubt);
    let mut in_doubt = false;
    // An upgrade gives an attempt another entry: look again until there is none.
    loop {
        let entries = reads::inspect(&store.connection, &queue).await;
        let entries = entries.map_err(|failure| failed(failure, in_doubt))?;
        let own = |entry: &Standing| note::attempt(&entry.note) == Some(attempt);
        let Some(victim) = entries.into_iter().find(own) else { return Ok(in_doubt) };
        let key = String::from_utf8_lossy(&victim.entry.key);
        let txn = removals::remove(&key, victim.entry.revision);
        let removed = commit(&store.connection, &txn, &mut in_doubt, &give_up).await;
        if removed.map_err(|failure| failed(failure, in_doubt))?.succeeded() {
            return Ok(true);
        }
    }
}

/// Returns the mark of a name, unless its period is over by this process's time of day.
pub(crate) async fn mark(store: &Store, name: &LockName) -> Result<Option<Mark>> {
    let key = store.layout.done(&store.layout.queue(name)?);
    let found =
        reads::get(&store.connection, Word::Leader, key.as_bytes(), &GetOptions::new()).await;
    let found = found.map_err(|failure| failure.into_error("mark", false))?;
    Ok(found.0.kvs.first().and_then(present))
}

fn present(kv: &PbKeyValue) -> Option<Mark> {
    marks::read(&kv.value).filter(|mark| mark.ends_at > wall_clock())
}

/// Returns the marks of the names that start with `start`, in the order of the names.
pub(crate) async fn marks(store: &Store, start: &str) -> Result<Vec<(LockName, Mark)>> {
    let found = reads::read(&store.connection, &store.layout.dones()).await;
    let found = found.map_err(|failure| failure.into_error("marks", false))?;
    let named = |kv: &PbKeyValue| {
        let name = store.layout.done_name(&kv.key)?;
        name.as_str().starts_with(start).then_some((name, present(kv)?))
    };
    let marks: BTreeMap<_, _> = found.0.kvs.iter().filter_map(named).collect();
    Ok(marks.into_iter().collect())
}

/// Removes the mark of a name. Returns whether there was one.
pub(crate) async fn clear_mark(store: &Store, name: &LockName) -> Result<bool> {
    let key = store.layout.done(&store.layout.queue(name)?);
    let is_there = Compare::create_revision(&*key, CompareOp::NotEqual, 0);
    let txn = Txn::new().when([is_there]).and_then([TxnOp::delete(&*key, None)]);
    let (mut in_doubt, until) = (false, Clock::Boot.now() + PATIENCE);
    let give_up = || Clock::Boot.now() >= until;
    let cleared = commit(&store.connection, &txn, &mut in_doubt, &give_up).await;
    let cleared = cleared.map_err(|failure| failure.into_error("clear the mark", in_doubt))?;
    // An earlier sending may have removed it.
    Ok(cleared.succeeded() || in_doubt)
}

/// Returns the token floor and the newest token.
pub(crate) async fn token_floor(store: &Store) -> Result<TokenFloor> {
    let asked = reads::floor(&store.connection, &store.layout.floor()).await;
    let (record, revision) = asked.map_err(|failure| failure.into_error("token floor", false))?;
    Ok(record.newest(revision))
}

/// Raises the floor, unless it is as high, and deletes the keys of all sessions: no attempt enters
/// in them any more. Of two concurrent callers, the second one finds the first one's floor.
pub(crate) async fn raise_token_floor(store: &Store, above: FencingToken) -> Result<TokenFloor> {
    let failed = |failure: Failure| failure.into_error("raise the token floor", true);
    let (key, sessions) = (&*store.layout.floor(), store.layout.sessions());
    let asked = reads::floor(&store.connection, key).await;
    let (mut record, mut revision) = asked.map_err(failed)?;
    let until = Clock::Boot.now() + PATIENCE;
    while record.above < above.value() {
        // The read of the same transaction returns what it writes.
        let raise = [
            TxnOp::put(key, above.to_string(), None),
            TxnOp::delete(&*sessions, Some(DeleteOptions::new().with_prefix())),
            TxnOp::get(key, None),
        ];
        let txn =
            Txn::new().when([record.compare(key)]).and_then(raise).or_else([TxnOp::get(key, None)]);
        let give_up = || Clock::Boot.now() >= until;
        let sent = commit(&store.connection, &txn, &mut false, &give_up).await;
        let answer = sent.map_err(failed)?;
        revision = requests::revision(answer.header()).map_err(failed)?;
        let found = firsts(answer).next().flatten();
        record = Record::read(found.as_ref()).map_err(failed)?;
    }
    Ok(record.newest(revision))
}

/// Returns the attempts with entries that were made before the floor was last raised.
pub(crate) async fn below_token_floor(store: &Store) -> Result<Vec<(LockName, Uuid)>> {
    let failed = |failure: Failure| failure.into_error("raise the token floor", true);
    let asked = reads::floor(&store.connection, &store.layout.floor()).await;
    let (record, _) = asked.map_err(failed)?;
    let names = names_with(store, "", |entry| record.is_after(entry.revision)).await;
    let mut found = Vec::new();
    for name in names.map_err(failed)? {
        let queue = store.layout.queue(&name)?;
        let standing = reads::inspect(&store.connection, &queue).await.map_err(failed)?;
        let old = standing.iter().filter(|standing| record.is_after(standing.entry.revision));
        let attempts = old.filter_map(|entry| note::attempt(&entry.note));
        found.extend(attempts.map(|attempt| (name.clone(), attempt)));
    }
    Ok(found)
}
