//! Reads of queues, of single entries, and of the token floor. The client takes no answer of more
//! than 4 MB, so long reads come in several answers.
//!
//! A read-only transaction crashes the member that serves it if the client leaves, up to 3.4.22 and
//! 3.5.6 (etcd#14110, #14891). Such a member gets requests for one queue at a time.

use std::sync::Arc;

use etcd_client::{GetOptions, GetResponse, Txn, TxnOp, TxnResponse};
use futures_util::future::{join_all, try_join_all};

use crate::{
    error::Failure,
    layout::{
        floor::{Floor, Record},
        keys::{self, Role, end_of_prefix},
        listing::{self, QueueEntry, Standing, queue_entries},
    },
    wire::{
        answer::{Answer, Header, ranges, revision},
        connection::{Connection, Word},
        member::Member,
        requests::{Entered, send_txn},
    },
};

/// How many keys are read in one request without their values.
const KEYS: i64 = 2000;

/// How many keys are read in one request with their values, unless these are large.
const VALUES: i64 = 500;

/// A queue at a revision, or later.
pub(crate) struct Listed {
    pub(crate) revision: i64,
    pub(crate) entries: Vec<QueueEntry>,
}

/// Lists several queues in one request. Lists each by itself if they are long, if the login may not
/// read all of them, or if etcd takes no transaction for so many. If not `exact`, the member in use
/// answers alone, and its answer may be old.
pub(crate) async fn list(
    connection: &Connection,
    queues: &[Arc<str>],
    exact: bool,
) -> Vec<Result<Listed, Failure>> {
    let mut options = GetOptions::new().with_keys_only();
    if !exact {
        options = options.with_serializable();
    }
    let word = if exact { Word::Leader } else { Word::Member };
    if queues.len() == 1 || connection.reads_alone() {
        return list_each(connection, queues, &options, word).await;
    }
    let range = |queue: &Arc<str>| TxnOp::get(&**queue, Some(options.clone().with_prefix()));
    let txn = Txn::new().and_then(queues.iter().map(range).collect::<Vec<_>>());
    match connection.look(word, |member| send_txn(member, &txn)).await.and_then(listed) {
        Ok(lists) if lists.len() == queues.len() => lists.into_iter().map(Ok).collect(),
        Err(failure) if failure.kind.is_passing() => {
            queues.iter().map(|_| Err(failure.clone())).collect()
        }
        _ => list_each(connection, queues, &options, word).await,
    }
}

fn listed(answer: TxnResponse) -> Result<Vec<Listed>, Failure> {
    let revision = revision(&answer)?;
    Ok(ranges(answer).map(|range| Listed { revision, entries: queue_entries(range.kvs) }).collect())
}

async fn list_each(
    connection: &Connection,
    queues: &[Arc<str>],
    options: &GetOptions,
    word: Word,
) -> Vec<Result<Listed, Failure>> {
    let lists = queues.iter().map(async |queue| {
        let all = read_all(connection, queue, (options, word), KEYS).await?;
        Ok(Listed { revision: revision_of(&all)?, entries: queue_entries(all.0.kvs) })
    });
    join_all(lists.collect::<Vec<_>>()).await
}

/// Asks the cluster whether the login may read a queue.
pub(crate) async fn check_right(connection: &Connection, queue: &str) -> Result<(), Failure> {
    let options = GetOptions::new().with_prefix().with_count_only();
    let asked = connection.look(Word::Leader, |member| {
        let (mut kv, queue) = (member.kv.clone(), queue.to_owned());
        async move { kv.get(queue, Some(options)).await }
    });
    asked.await.map(drop)
}

/// Returns a queue with its notes, in order.
pub(crate) async fn inspect(
    connection: &Connection,
    queue: &str,
) -> Result<Vec<Standing>, Failure> {
    let mut entries = listing::entries(read(connection, queue).await?.0.kvs);
    // Read after the entries: a candidate without a note is gone by now.
    if entries.iter().any(|entry| entry.role == Role::Candidate) {
        let notes = read(connection, &keys::notes(queue)).await?;
        listing::add_notes(&mut entries, notes.0.kvs);
    }
    entries.sort_by_key(|standing| standing.entry.revision);
    Ok(entries)
}

/// Returns a queue with all values.
pub(crate) async fn read(connection: &Connection, queue: &str) -> Result<GetResponse, Failure> {
    read_all(connection, queue, (&GetOptions::new(), Word::Leader), VALUES).await
}

/// Returns a candidate's note; empty if the candidate is gone.
pub(crate) async fn note(
    connection: &Connection,
    key: &str,
    revision: i64,
) -> Result<Vec<u8>, Failure> {
    let note = read(connection, &keys::note(key)).await?;
    let note = note.0.kvs.into_iter().find(|kv| kv.mod_revision == revision);
    Ok(note.map(|kv| kv.value).unwrap_or_default())
}

/// Returns all keys that start with `start`, at one revision.
async fn read_all(
    connection: &Connection,
    start: &str,
    (options, word): (&GetOptions, Word),
    mut limit: i64,
) -> Result<GetResponse, Failure> {
    let to = end_of_prefix(start.as_bytes());
    let mut all: Option<GetResponse> = None;
    loop {
        let (from, at) = match &all {
            None => (start.as_bytes().to_vec(), 0),
            Some(all) => (behind_last(all), revision_of(all)?),
        };
        let options = options.clone().with_range(to.clone()).with_limit(limit).with_revision(at);
        let page = connection.look(word, |member| {
            let mut kv = member.kv.clone();
            async move { kv.get(from, Some(options)).await }
        });
        match page.await {
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

fn revision_of(answer: &GetResponse) -> Result<i64, Failure> {
    answer.header().map(|header| header.revision()).ok_or(Failure::senseless("no header"))
}

/// Returns some keys of a range in order, and where to continue if there are more.
pub(crate) async fn page(
    connection: &Connection,
    from: &[u8],
    to: &[u8],
) -> Result<(Vec<QueueEntry>, Option<Vec<u8>>), Failure> {
    let options = GetOptions::new().with_keys_only().with_range(to).with_limit(KEYS);
    let page = connection
        .look(Word::Leader, |member| {
            let (mut kv, from) = (member.kv.clone(), from.to_owned());
            async move { kv.get(from, Some(options)).await }
        })
        .await?;
    let next = page.more().then(|| behind_last(&page));
    Ok((queue_entries(page.0.kvs), next))
}

/// Returns an attempt's entry, if an earlier sending has made it.
pub(crate) async fn standing(
    connection: &Connection,
    queue: &Arc<str>,
    key: &str,
    give_up: impl Fn() -> bool,
) -> Result<Option<Entered>, Failure> {
    let options = GetOptions::new().with_prefix().with_keys_only();
    let answer = connection.insist(give_up, |member| send_get(member, queue, &options));
    let answer = answer.await.result?;
    let header = Header::of(answer.header());
    let all = queue_entries(answer.0.kvs);
    let own = all.iter().find(|entry| entry.key == key.as_bytes());
    let Some(revision) = own.map(|entry| entry.revision) else { return Ok(None) };
    let before = all.into_iter().filter(|entry| entry.revision < revision).collect();
    Ok(Some(Entered { header, revision, before }))
}

/// Returns the create revisions of entries; `None` for entries that do not stand. Reads each by
/// itself: a read of several in one transaction may crash the member if the client leaves (see
/// [above](self)).
pub(crate) async fn created(
    connection: &Connection,
    keys: &[&str],
    give_up: impl Fn() -> bool,
) -> Result<Vec<Option<i64>>, Failure> {
    let (options, give_up) = (GetOptions::new().with_keys_only(), &give_up);
    let get = |key: &&str| {
        let (key, options) = ((*key).to_owned(), options.clone());
        async move {
            let found = connection.insist(give_up, |member| send_get(member, &key, &options));
            let found = found.await.result?;
            Ok(found.kvs().first().map(|kv| kv.create_revision()))
        }
    };
    try_join_all(keys.iter().map(get).collect::<Vec<_>>()).await
}

fn send_get(
    member: &Member,
    key: &str,
    options: &GetOptions,
) -> impl Future<Output = Answer<GetResponse>> + Send + use<> {
    let (mut kv, key, options) = (member.kv.clone(), key.to_owned(), options.clone());
    async move { kv.get(key, Some(options)).await }
}

/// Returns whether an entry is there, confirmed by the whole cluster.
pub(crate) async fn exists(
    connection: &Connection,
    key: &str,
    revision: i64,
) -> Result<bool, Failure> {
    let answer = connection
        .look(Word::Leader, |member| {
            let (mut kv, key) = (member.kv.clone(), key.to_owned());
            async move { kv.get(key, Some(GetOptions::new().with_keys_only())).await }
        })
        .await?;
    Ok(answer.kvs().first().is_some_and(|kv| kv.create_revision() == revision))
}

/// Returns the token floor's record, and the store's revision.
pub(crate) async fn floor(
    connection: &Connection,
    floor: &Floor,
) -> Result<(Arc<Record>, i64), Failure> {
    let get = |member: &Member| {
        let (mut kv, key) = (member.kv.clone(), floor.key.clone());
        async move { kv.get(key, Some(GetOptions::new())).await }
    };
    let answer = connection.look(Word::Leader, get).await?;
    let revision = Header::of(answer.header()).revision();
    Ok((floor.learn(Record::read(answer.0.kvs.first())?), revision))
}
