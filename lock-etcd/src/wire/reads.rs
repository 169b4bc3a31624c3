//! Reads of queues, now or in the past, of single entries, and of the token floor. The client takes
//! no answer of more than 4 MB, so long reads come in several answers.
//!
//! A read-only transaction crashes the member that serves it if the client leaves, up to 3.4.22 and
//! 3.5.6 (etcd#14110, #14891). Such a member gets requests for one queue at a time.

use std::sync::Arc;

use etcd_client::{
    Compare, CompareOp, GetOptions, GetResponse, KeyValue, ResponseHeader, Txn, TxnOp, TxnResponse,
};
use futures_util::future::{join_all, try_join_all};
use lock_core::{
    Kind,
    queue::{self, Verdict},
};
use uuid::Uuid;

use crate::{
    error::Failure,
    layout::{
        floor::Record,
        keys::{self, Role, end_of_prefix, role},
        listing::{self, Before, Listed, QueueEntry, Standing, queue_entries},
        note,
    },
    wire::{
        connection::{Connection, GiveUp, Word},
        member::{Answer, Member},
        requests::{self, Entered, LAST, header, ranges, revision, send_txn},
        revisions::Mark,
    },
};

/// How many keys are read in one request without their values.
const KEYS: i64 = 2000;

/// How many keys are read in one request with their values, unless these are large.
const VALUES: i64 = 500;

/// How many keys of a queue show whether its last entry was granted at once: an entry behind more of
/// them has probably waited.
const SHOWING: i64 = 64;

/// A queue to list.
pub(crate) struct Wanted {
    pub(crate) queue: Arc<str>,
    /// The create revision up to which to list the last entries; `None` for all entries.
    pub(crate) up_to: Option<i64>,
    /// The key and create revision of a far name's bell. While it and our entries stand, no list is
    /// wanted: etcd reads and sorts the whole queue for one.
    pub(crate) bell: Option<(Vec<u8>, i64)>,
    /// The keys and create revisions of our entries, first one first, unless all are listed.
    pub(crate) own: Vec<(Vec<u8>, i64)>,
}

impl Wanted {
    fn options(&self) -> GetOptions {
        match self.up_to {
            Some(up_to) => requests::last(LAST + 1).with_max_create_revision(up_to),
            None => GetOptions::new().with_keys_only().with_prefix(),
        }
    }
}

/// Lists several queues in one request. Lists each by itself if they are long, if the login may not
/// read all of them, or if etcd takes no transaction for so many. Only a name that comes alone, as
/// most far ones do, is not listed while its [bell](Wanted::bell) stands.
pub(crate) async fn list(
    connection: &Connection,
    wanted: &[Wanted],
) -> Vec<Result<Listed, Failure>> {
    if wanted.len() <= 1 || connection.reads_alone {
        return list_each(connection, wanted).await;
    }
    let range = |wanted: &Wanted| TxnOp::get(&*wanted.queue, Some(wanted.options()));
    let txn = Txn::new().and_then(wanted.iter().map(range).collect::<Vec<_>>());
    let answer = connection.look(Word::Leader, |member| send_txn(member, &txn)).await;
    match answer.and_then(|answer| listed(answer, wanted)) {
        Ok(lists) if lists.len() == wanted.len() => {
            let lists = lists.into_iter().zip(wanted);
            let lists = lists.map(|(list, wanted)| seeing(connection, wanted, list));
            join_all(lists.collect::<Vec<_>>()).await
        }
        Err(failure) if !failure.concerns_a_part() => {
            wanted.iter().map(|_| Err(failure.clone())).collect()
        }
        _ => list_each(connection, wanted).await,
    }
}

fn listed(answer: TxnResponse, wanted: &[Wanted]) -> Result<Vec<Listed>, Failure> {
    let revision = revision(answer.header())?;
    let lists = ranges(answer).zip(wanted);
    Ok(lists.map(|(range, wanted)| Listed::read(revision, range, wanted.up_to)).collect())
}

async fn list_each(connection: &Connection, wanted: &[Wanted]) -> Vec<Result<Listed, Failure>> {
    let lists = wanted.iter().map(|wanted| list_one(connection, wanted));
    join_all(lists.collect::<Vec<_>>()).await
}

async fn list_one(connection: &Connection, wanted: &Wanted) -> Result<Listed, Failure> {
    let (queue, up_to) = (wanted.queue.as_bytes(), wanted.up_to);
    let list = match (&wanted.bell, &*wanted.own) {
        _ if up_to.is_none() => return entries(connection, queue, &end_of_prefix(queue)).await,
        (Some(bell), [first, ..]) if !connection.reads_alone => {
            let stands = |(key, at): &(Vec<u8>, i64)| {
                Compare::create_revision(key.as_slice(), CompareOp::Equal, *at)
            };
            let list = TxnOp::get(queue, Some(wanted.options()));
            let all = std::iter::once(bell).chain(&wanted.own).map(stands);
            let txn = Txn::new().when(all.collect::<Vec<_>>()).or_else([list]);
            let answer = connection.look(Word::Leader, |member| send_txn(member, &txn)).await?;
            let revision = revision(answer.header())?;
            match ranges(answer).next() {
                Some(range) => Listed::read(revision, range, up_to),
                None => return Ok(Listed::one(revision, first.clone())),
            }
        }
        _ => {
            let answer = get(connection, Word::Leader, queue, &wanted.options()).await?;
            Listed::read(revision(answer.header())?, answer.0, up_to)
        }
    };
    seeing(connection, wanted, list).await
}

/// Returns a list, or that of the whole queue if it shows nothing. A list that does not reach the
/// head tells which of our later entries are gone: otherwise one of the whole queue follows.
async fn seeing(
    connection: &Connection,
    wanted: &Wanted,
    mut list: Listed,
) -> Result<Listed, Failure> {
    let queue = wanted.queue.as_bytes();
    if list.is_blind() {
        return entries(connection, queue, &end_of_prefix(queue)).await;
    }
    let is_later = |(_, at): &&(Vec<u8>, i64)| !list.has_the_head() && !list.range.contains(at);
    let later: Vec<_> = wanted.own.iter().filter(is_later).collect();
    let stand = later.iter().map(|(key, at)| exists(connection, key, *at));
    let stand = try_join_all(stand.collect::<Vec<_>>()).await?;
    let gone = later.iter().zip(stand).filter(|(_, stands)| !stands);
    list.gone = gone.map(|((_, at), _)| *at).collect();
    Ok(list)
}

/// Returns a queue with its notes, in order.
pub(crate) async fn inspect(
    connection: &Connection,
    queue: &str,
) -> Result<Vec<Standing>, Failure> {
    let mut entries = listing::entries(read(connection, queue).await?.0.kvs);
    // Read after the entries: a candidate without a note is gone by now.
    if entries.iter().any(|entry| entry.role == Role::Candidate) {
        let notes = read(connection, &keys::note(queue)).await?;
        listing::add_notes(&mut entries, notes.0.kvs);
    }
    entries.sort_by_key(|standing| standing.entry.revision);
    Ok(entries)
}

/// Returns a queue with all values.
pub(crate) async fn read(connection: &Connection, queue: &str) -> Result<GetResponse, Failure> {
    read_all(connection, queue.as_bytes(), &end_of_prefix(queue.as_bytes()), false).await
}

/// Returns a candidate's note; empty if the candidate is gone.
pub(crate) async fn note(
    connection: &Connection,
    key: &str,
    revision: i64,
) -> Result<Vec<u8>, Failure> {
    let key = keys::note(key).into_bytes();
    let note = get(connection, Word::Leader, &key, &GetOptions::new()).await?;
    let note = note.0.kvs.into_iter().find(|kv| kv.mod_revision == revision);
    Ok(note.map(|kv| kv.value).unwrap_or_default())
}

/// Returns all keys from `start` to `end`, at one revision; without their values if `keys_only`.
async fn read_all(
    connection: &Connection,
    start: &[u8],
    end: &[u8],
    keys_only: bool,
) -> Result<GetResponse, Failure> {
    let (mut limit, mut all) = (if keys_only { KEYS } else { VALUES }, None::<GetResponse>);
    loop {
        let (from, at) = match &all {
            None => (start.to_vec(), 0),
            Some(all) => (behind_last(all), revision(all.header())?),
        };
        let options = GetOptions::new().with_range(end).with_limit(limit).with_revision(at);
        let options = if keys_only { options.with_keys_only() } else { options };
        match get(connection, Word::Leader, &from, &options).await {
            Ok(page) => {
                let more = page.more();
                match &mut all {
                    None => all = Some(page),
                    Some(all) => all.0.kvs.extend(page.0.kvs),
                }
                if let Some(all) = all.take_if(|_| !more) {
                    return Ok(all);
                }
            }
            Err(failure) if failure.is_answer_too_large() && limit > 1 => {
                limit = (limit / 8).max(1)
            }
            // The history was compacted meanwhile: begin anew.
            Err(failure) if failure.is_compacted() => all = None,
            Err(failure) => return Err(failure),
        }
    }
}

fn behind_last(page: &GetResponse) -> Vec<u8> {
    let last = page.kvs().last().map_or(b"".as_slice(), |last| last.key());
    [last, &[0]].concat()
}

/// Returns the entries in a range of keys.
pub(crate) async fn entries(
    connection: &Connection,
    from: &[u8],
    to: &[u8],
) -> Result<Listed, Failure> {
    let all = read_all(connection, from, to, true).await?;
    Ok(Listed::all(revision(all.header())?, queue_entries(all.0.kvs)))
}

/// Returns the create revision of an attempt's entry, and its last modification, if it stands.
/// Another entry may have its key; the note says whose it is.
pub(crate) async fn entry_of(
    connection: &Connection,
    key: &str,
    attempt: Uuid,
    give_up: GiveUp<'_>,
) -> Result<Option<(i64, i64)>, Failure> {
    // A candidate's note is written with its entry.
    let (note, is_candidate) = match role(key.as_bytes()) {
        Role::Candidate => (keys::note(key), true),
        _ => (key.to_owned(), false),
    };
    let found = insist(connection, &note, &GetOptions::new(), give_up).await?;
    let own = found.kvs().first().filter(|kv| note::attempt(kv.value()) == Some(attempt));
    let modified = |kv: &KeyValue| kv.mod_revision();
    Ok(own.map(|kv| (if is_candidate { modified(kv) } else { kv.create_revision() }, modified(kv))))
}

/// Returns an attempt's entry with this create revision, if it stands, and the entries before it
/// that its [acquiring transaction](requests::queue_up) lists.
pub(crate) async fn standing(
    connection: &Connection,
    queue: &Arc<str>,
    kind: Kind,
    key: &str,
    revision: i64,
    give_up: GiveUp<'_>,
) -> Result<Option<Entered>, Failure> {
    let options = match kind {
        Kind::Exclusive => requests::last(LAST + 1).with_max_create_revision(revision),
        _ => GetOptions::new().with_prefix().with_keys_only(),
    };
    let answer = insist(connection, queue, &options, give_up).await?;
    let header = header(answer.header())?;
    let mut before = Before::read(answer.0);
    let is_own = |entry: &QueueEntry| entry.revision == revision && entry.key == key.as_bytes();
    if !before.entries.iter().any(is_own) {
        return Ok(None);
    }
    before.entries.retain(|entry| entry.revision < revision);
    // etcd counts what entered since, too.
    before.count = (!before.more).then_some(before.entries.len());
    Ok(Some(Entered { header, revision, before }))
}

/// Returns the create revision of a key; `None` if it does not stand.
pub(crate) async fn created(
    connection: &Connection,
    key: &str,
    give_up: GiveUp<'_>,
) -> Result<Option<i64>, Failure> {
    let found = insist(connection, key, &GetOptions::new().with_keys_only(), give_up).await?;
    Ok(found.kvs().first().map(|kv| kv.create_revision()))
}

/// Reads once, when there is room for a look.
pub(crate) async fn get(
    connection: &Connection,
    word: Word,
    key: &[u8],
    options: &GetOptions,
) -> Result<GetResponse, Failure> {
    connection.look(word, |member| send_get(member, key, options)).await
}

/// Reads until the answer is definite or `give_up` returns true. Waits for no room for a look.
pub(super) async fn insist(
    connection: &Connection,
    key: &str,
    options: &GetOptions,
    give_up: GiveUp<'_>,
) -> Result<GetResponse, Failure> {
    let send = |member: &Member| send_get(member, key.as_bytes(), options);
    connection.insist(&mut false, give_up, send).await
}

/// Takes a member's revision. Asks the whole cluster if it is below what the client had seen before:
/// the member lags, or the answer shows that the store has gone back.
pub(crate) fn doubt(connection: &Arc<Connection>, mark: Mark, member: Option<&ResponseHeader>) {
    let Some(revision) = member.map(ResponseHeader::revision) else { return };
    if !mark.is_above(revision) {
        return connection.revisions.told(mark, revision);
    }
    let connection = connection.clone();
    tokio::spawn(async move {
        let Some(key) = connection.revisions.begin_doubt() else { return };
        let options = GetOptions::new().with_keys_only();
        // The connection takes the revision of the answer.
        drop(insist(&connection, key, &options, &|| false).await);
        connection.revisions.end_doubt();
    });
}

fn send_get(
    member: &Member,
    key: &[u8],
    options: &GetOptions,
) -> impl Future<Output = Answer<GetResponse>> + Send + use<> {
    let (mut kv, key, options) = (member.client.kv_client(), key.to_owned(), options.clone());
    async move { kv.get(key, Some(options)).await }
}

/// Returns whether an entry is there, confirmed by the whole cluster.
pub(crate) async fn exists(
    connection: &Connection,
    key: &[u8],
    revision: i64,
) -> Result<bool, Failure> {
    let options = GetOptions::new().with_keys_only();
    let answer = get(connection, Word::Leader, key, &options).await?;
    Ok(answer.kvs().first().is_some_and(|kv| kv.create_revision() == revision))
}

/// Returns the token floor's record, and the store's revision.
pub(crate) async fn floor(connection: &Connection, key: &str) -> Result<(Record, i64), Failure> {
    let answer = get(connection, Word::Leader, key.as_bytes(), &GetOptions::new()).await?;
    let revision = revision(answer.header())?;
    Ok((Record::read(answer.0.kvs.first())?, revision))
}

/// Returns whether the entry with this create revision was granted when it was made. It reads the
/// queue at that revision once, which costs the holder nothing. Returns `false` also if etcd does
/// not know any more.
///
/// The time of a grant after a wait is not stored: etcd keeps revisions, and no times.
pub(crate) async fn entered_at_once(connection: &Connection, queue: &str, revision: i64) -> bool {
    let options = GetOptions::new()
        .with_prefix()
        .with_keys_only()
        .with_limit(SHOWING)
        .with_revision(revision)
        .with_serializable();
    let answer = get(connection, Word::Member, queue.as_bytes(), &options).await;
    // Compacted, or not known to this member yet. The result is for people, so the caller must not
    // fail.
    let Ok(answer) = answer else { return false };
    !answer.more() && admitted(queue_entries(answer.0.kvs), revision)
}

/// Whether the last entry of a queue has this revision and holds the lock.
fn admitted(mut entries: Vec<QueueEntry>, revision: i64) -> bool {
    entries.sort_unstable_by_key(|entry| entry.revision);
    let Some((own, before)) = entries.split_last() else { return false };
    let before: Vec<_> = before.iter().map(|entry| entry.kind).collect();
    own.revision == revision && queue::judge(&before, own.kind) == Verdict::Admitted
}

#[cfg(test)]
mod tests {
    use super::*;

    fn entries(kinds: &[(i64, Kind)]) -> Vec<QueueEntry> {
        let entry = |(revision, kind): &(i64, Kind)| QueueEntry {
            revision: *revision,
            key: revision.to_string().into(),
            kind: *kind,
        };
        kinds.iter().map(entry).collect()
    }

    #[test]
    fn a_grant_alone_or_beside_readers_is_at_once() {
        assert!(admitted(entries(&[(7, Kind::Exclusive)]), 7));
        assert!(admitted(entries(&[(7, Kind::Shared), (5, Kind::Shared)]), 7));
    }

    #[test]
    fn a_grant_behind_another_entry_or_unknown_is_not_at_once() {
        assert!(!admitted(entries(&[(5, Kind::Shared), (7, Kind::Exclusive)]), 7));
        assert!(!admitted(entries(&[(5, Kind::Exclusive)]), 7));
        assert!(!admitted(Vec::new(), 7));
    }
}
