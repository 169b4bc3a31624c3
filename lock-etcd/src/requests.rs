//! The requests and their answers, taken apart.

use std::{sync::Arc, time::Duration};

use etcd_client::{
    Compare, CompareOp, DeleteOptions, GetOptions, GetResponse, PutOptions, Txn, TxnOp,
    TxnResponse,
    proto::{PbRangeResponse, PbTxnOpResponse},
};

use crate::{
    connection::{Connection, Insisted, Member},
    error::Failure,
    layout::{self, Role, end_of_entry, role},
    listing::{self, Standing, places},
    queue::Place,
};

/// How many keys are listed in one request: below what etcd and the client put into one message.
const PAGE: i64 = 2000;

type Answer<T> = Result<T, etcd_client::Error>;

/// An attempt's entry as the store has it.
#[derive(Debug)]
pub(crate) struct Entered {
    /// Its create revision.
    pub(crate) revision: i64,
    /// The entries before it.
    pub(crate) before: Vec<Place>,
}

/// An entry that is to be made.
#[derive(Clone, Copy, Debug)]
pub(crate) struct NewEntry<'a> {
    pub(crate) key: &'a str,
    pub(crate) lease: i64,
    pub(crate) note: &'a [u8],
    /// What a candidate says to everybody.
    pub(crate) value: Option<&'a [u8]>,
}

impl NewEntry<'_> {
    fn puts(&self) -> Vec<TxnOp> {
        let Self { key, lease, note, value } = *self;
        match value {
            None => vec![put(key, lease, note)],
            Some(value) => vec![put(key, lease, value), put(&layout::note(key), lease, note)],
        }
    }
}

/// The transaction that queues up, and tells who was there before. Sent again, it does nothing.
pub(crate) fn queue_up(queue: &str, entry: NewEntry<'_>) -> Txn {
    // The range comes first and so does not see the put.
    let operations = std::iter::once(range(queue)).chain(entry.puts());
    Txn::new()
        .when([Compare::create_revision(entry.key, CompareOp::Equal, 0)])
        .and_then(operations.collect::<Vec<_>>())
}

/// The transaction that enters an empty queue only. Sent again, it does nothing.
pub(crate) fn enter_if_free(queue: &str, entry: NewEntry<'_>) -> Txn {
    enter_all_if_free(std::iter::once((queue, entry)))
}

/// As [`enter_if_free`] for several queues: all or none.
pub(crate) fn enter_all_if_free<'a>(entries: impl Iterator<Item = (&'a str, NewEntry<'a>)>) -> Txn {
    let (mut free, mut puts) = (Vec::new(), Vec::new());
    for (queue, entry) in entries {
        free.push(Compare::create_revision(queue, CompareOp::Equal, 0).with_prefix());
        puts.extend(entry.puts());
    }
    Txn::new().when(free).and_then(puts)
}

/// As [`enter_if_free`], and tells who is there if the queue is not empty.
pub(crate) fn enter_or_list(queue: &str, entry: NewEntry<'_>) -> Txn {
    enter_if_free(queue, entry).or_else([range(queue)])
}

fn range(queue: &str) -> TxnOp {
    TxnOp::get(queue, Some(GetOptions::new().with_prefix().with_keys_only()))
}

pub(crate) fn put(key: &str, lease: i64, value: &[u8]) -> TxnOp {
    TxnOp::put(key, value, Some(PutOptions::new().with_lease(lease)))
}

/// The transaction that removes an entry and what belongs to it, if it is still the one that was
/// seen. Sent again, it does nothing.
pub(crate) fn remove(key: &str, revision: i64) -> Txn {
    Txn::new().when([stands(key, revision)]).and_then(delete_entry(key))
}

/// Whether an entry is still the one that was seen.
pub(crate) fn stands(key: &str, revision: i64) -> Compare {
    Compare::create_revision(key, CompareOp::Equal, revision)
}

/// Deletes an entry and what belongs to it.
pub(crate) fn delete_entry(key: &str) -> Vec<TxnOp> {
    let note = is_candidate(key).then(|| TxnOp::delete(layout::note(key), None));
    std::iter::once(TxnOp::delete(key, Some(with_belongings(key)))).chain(note).collect()
}

fn is_candidate(key: &str) -> bool {
    role(key.as_bytes()) == Role::Candidate
}

fn with_belongings(key: &str) -> DeleteOptions {
    DeleteOptions::new().with_range(end_of_entry(key))
}

/// The answer to one of these; if it did nothing, whom it found there, as far as it looked.
pub(crate) fn entered(answer: TxnResponse) -> Result<Result<Entered, Vec<Place>>, Failure> {
    let (succeeded, revision) = (answer.succeeded(), revision(&answer)?);
    let found = ranges(answer).next().map(|range| places(range.kvs)).unwrap_or_default();
    Ok(match succeeded {
        true => Ok(Entered { revision, before: found }),
        false => Err(found),
    })
}

/// Where an attempt's entry stands, if an earlier sending has made it.
pub(crate) async fn standing(
    connection: &Connection,
    queue: &str,
    key: &str,
    note: &[u8],
    give_up: impl Fn() -> bool,
) -> Result<Option<Entered>, Failure> {
    let get = |start: String| connection.insist(&give_up, move |member| get_all(member, &start));
    let mut all = listing::entries(get(queue.to_owned()).await.result?.0.kvs);
    if is_candidate(key) {
        listing::add_notes(&mut all, get(layout::note(key)).await.result?.0.kvs);
    }
    let own = |entry: &&Standing| entry.place.key == key.as_bytes() && entry.note == note;
    let Some(revision) = all.iter().find(own).map(|entry| entry.place.revision) else {
        return Ok(None);
    };
    let before = all.into_iter().map(|entry| entry.place);
    let before = before.filter(|place| place.revision < revision).collect();
    Ok(Some(Entered { revision, before }))
}

pub(crate) fn revision(answer: &TxnResponse) -> Result<i64, Failure> {
    answer.header().map(|header| header.revision()).ok_or(Failure::senseless("no header"))
}

pub(crate) fn ranges(answer: TxnResponse) -> impl Iterator<Item = PbRangeResponse> {
    answer.0.responses.into_iter().filter_map(|op| match op.response {
        Some(PbTxnOpResponse::ResponseRange(range)) => Some(range),
        _ => None,
    })
}

/// Several queues as they stand at one revision.
pub(crate) struct Lists {
    pub(crate) revision: i64,
    pub(crate) queues: Vec<Vec<Place>>,
}

/// Lists several queues in one request. Not `exact`: as the member at hand knows them, which may
/// be a while ago, and asks no other member.
pub(crate) async fn list(
    connection: &Connection,
    queues: &[Arc<str>],
    exact: bool,
) -> Result<Lists, Failure> {
    let mut options = GetOptions::new().with_prefix().with_keys_only();
    if !exact {
        options = options.with_serializable();
    }
    let range = |queue: &Arc<str>| TxnOp::get(&**queue, Some(options.clone()));
    let txn = Txn::new().and_then(queues.iter().map(range).collect::<Vec<_>>());
    let answer = connection.call(|member| send_txn(member, &txn)).await?;
    let revision = revision(&answer)?;
    Ok(Lists { revision, queues: ranges(answer).map(|range| places(range.kvs)).collect() })
}

/// Fails if etcd wants to know who we are: it grants leases to anybody. What the login may do is
/// found out when it does it.
pub(crate) async fn check_login(member: &Member) -> Answer<()> {
    let anything = GetOptions::new().with_count_only().with_serializable();
    match member.kv.clone().get("\0", Some(anything)).await {
        Err(etcd_client::Error::GRpcStatus(status))
            if status.code() == tonic::Code::PermissionDenied =>
        {
            Ok(())
        }
        answer => answer.map(drop),
    }
}

/// Sends a transaction.
pub(crate) fn send_txn(
    member: &Member,
    txn: &Txn,
) -> impl Future<Output = Answer<TxnResponse>> + Send + use<> {
    let (mut kv, txn) = (member.kv.clone(), txn.clone());
    async move { kv.txn(txn).await }
}

/// Deletes an attempt's entry, and with `all` what belongs to it; its note in any case. It is gone
/// afterwards, whoever deleted it.
///
/// Deletes by key alone, which costs etcd half of what a transaction that compares first does. So
/// the key must not be used again before no sending of this can arrive any more.
pub(crate) async fn delete(
    connection: &Connection,
    key: &str,
    all: bool,
    give_up: impl Fn() -> bool,
) -> Insisted<()> {
    connection
        .insist(give_up, |member| {
            let (mut kv, key) = (member.kv.clone(), key.to_owned());
            let options = all.then(|| with_belongings(&key));
            let noted = is_candidate(&key).then(|| Txn::new().and_then(delete_entry(&key)));
            async move {
                match noted {
                    Some(txn) => kv.txn(txn).await.map(drop),
                    None => kv.delete(key, options).await.map(drop),
                }
            }
        })
        .await
}

/// A queue with its notes, in order.
pub(crate) async fn inspect(
    connection: &Connection,
    queue: &str,
) -> Result<Vec<Standing>, Failure> {
    let answer = connection.call(|member| get_all(member, queue)).await?;
    let mut entries = listing::entries(answer.0.kvs);
    // Later than the entries: a candidate without a note is gone by now.
    if entries.iter().any(|entry| entry.role == Role::Candidate) {
        let notes = layout::notes(queue);
        let notes = connection.call(|member| get_all(member, &notes)).await?;
        listing::add_notes(&mut entries, notes.0.kvs);
    }
    entries.sort_by_key(|entry| entry.place.revision);
    Ok(entries)
}

/// How long a lease lasts unless it is renewed, in whole seconds; `None` if it is over.
pub(crate) async fn ttl_left(
    connection: &Connection,
    lease: i64,
) -> Result<Option<Duration>, Failure> {
    let ask = |member: &Member| {
        let mut leases = member.lease.clone();
        async move { leases.time_to_live(lease, None).await }
    };
    let left = connection.call(ask).await?.ttl();
    Ok(u64::try_from(left).ok().map(Duration::from_secs))
}

/// A queue as it stands, with all values.
pub(crate) async fn read(connection: &Connection, queue: &str) -> Result<GetResponse, Failure> {
    connection.call(|member| get_all(member, queue)).await
}

/// A candidate's note; empty if the candidate is gone.
pub(crate) async fn note(
    connection: &Connection,
    key: &str,
    revision: i64,
) -> Result<Vec<u8>, Failure> {
    let note = layout::note(key);
    let answer = connection.call(|member| get_all(member, &note)).await?;
    let note = answer.0.kvs.into_iter().find(|kv| kv.mod_revision == revision);
    Ok(note.map(|kv| kv.value).unwrap_or_default())
}

/// Everything that starts with `start`.
fn get_all(
    member: &Member,
    start: &str,
) -> impl Future<Output = Answer<GetResponse>> + Send + use<> {
    let (mut kv, start) = (member.kv.clone(), start.to_owned());
    async move { kv.get(start, Some(GetOptions::new().with_prefix())).await }
}

/// Some keys of a range in their order, and whether there are more.
pub(crate) async fn page(
    connection: &Connection,
    from: &[u8],
    to: &[u8],
) -> Result<(Vec<Place>, Option<Vec<u8>>), Failure> {
    let options = GetOptions::new().with_keys_only().with_range(to).with_limit(PAGE);
    let page = connection
        .call(|member| {
            let (mut kv, from) = (member.kv.clone(), from.to_owned());
            async move { kv.get(from, Some(options)).await }
        })
        .await?;
    let last = page.kvs().last().filter(|_| page.more()).map(|last| last.key().to_vec());
    Ok((places(page.0.kvs), last))
}

/// Whether an entry is there, by the word of the whole cluster.
pub(crate) async fn exists(
    connection: &Connection,
    key: &str,
    revision: i64,
) -> Result<bool, Failure> {
    let answer = connection
        .call(|member| {
            let (mut kv, key) = (member.kv.clone(), key.to_owned());
            async move { kv.get(key, Some(GetOptions::new().with_keys_only())).await }
        })
        .await?;
    Ok(answer.kvs().first().is_some_and(|kv| kv.create_revision() == revision))
}

/// Makes a lease with an id of our own and answers the TTL that etcd granted.
pub(crate) fn send_grant(
    member: &Member,
    lease: i64,
    seconds: u64,
) -> impl Future<Output = Answer<u64>> + Send + use<> {
    let mut leases = member.lease.clone();
    let options = etcd_client::LeaseGrantOptions::new().with_id(lease);
    let seconds = i64::try_from(seconds).unwrap_or(i64::MAX);
    async move {
        let granted = leases.grant(seconds, Some(options)).await?;
        Ok(granted.ttl().unsigned_abs())
    }
}

/// Ends a lease and deletes its keys. It has ended afterwards, whoever ended it.
pub(crate) async fn revoke(
    connection: &Connection,
    lease: i64,
    give_up: impl Fn() -> bool,
) -> Result<(), Failure> {
    let insisted = connection
        .insist(give_up, |member| {
            let mut leases = member.lease.clone();
            async move { leases.revoke(lease).await.map(drop) }
        })
        .await;
    match insisted.result {
        Err(failure) if failure.kind == crate::error::Kind::LeaseGone => Ok(()),
        result => result,
    }
}
