//! The requests and their answers, taken apart.

use std::{sync::Arc, time::Duration};

use etcd_client::{
    Compare, CompareOp, DeleteOptions, GetOptions, GetResponse, PutOptions, ResponseHeader, Txn,
    TxnOp, TxnResponse,
    proto::{PbRangeResponse, PbResponseOp, PbTxnOpResponse},
};
use futures_util::future::try_join_all;
use lock_core::Facts;

use crate::{
    epoch::{self, Guard},
    error::Failure,
    layout::{
        floor::Record,
        keys::{self, Role, end_of_entry, role},
        listing::{Place, places},
    },
    wire::connection::{Connection, Member, Word},
};

pub(crate) type Answer<T> = Result<T, etcd_client::Error>;

/// Who answered, and when.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Header {
    revision: i64,
    cluster: u64,
    member: u64,
    term: u64,
}

impl Header {
    pub(crate) fn of(header: Option<&ResponseHeader>) -> Self {
        header.map_or(Self::default(), |header| Self {
            revision: header.revision(),
            cluster: header.cluster_id(),
            member: header.member_id(),
            term: header.raft_term(),
        })
    }

    pub(crate) fn revision(self) -> i64 {
        self.revision
    }

    pub(crate) fn facts(self) -> Facts {
        Facts::new([
            ("revision", self.revision.unsigned_abs()),
            ("cluster_id", self.cluster),
            ("member_id", self.member),
            ("raft_term", self.term),
        ])
    }
}

/// An attempt's entry as the store has it.
#[derive(Debug)]
pub(crate) struct Entered {
    pub(crate) header: Header,
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
            Some(value) => vec![put(key, lease, value), put(&keys::note(key), lease, note)],
        }
    }
}

/// What an acquiring transaction asks for besides its queue.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Terms<'a> {
    pub(crate) guard: Guard<'a>,
    /// The token floor's key, and what it must have.
    pub(crate) floor: (&'a str, &'a Record),
}

impl Terms<'_> {
    fn compares(&self) -> [Compare; 2] {
        let (key, record) = self.floor;
        [self.guard.compare(), record.compare(key)]
    }

    /// Tells what is there, if it is something else.
    fn reads(&self) -> [TxnOp; 2] {
        [self.guard.read(), TxnOp::get(self.floor.0, None)]
    }
}

/// The transaction that queues up, and tells who was there before. Sent again, it does nothing.
pub(crate) fn queue_up(queue: &str, entry: NewEntry<'_>, terms: Terms<'_>) -> Txn {
    // The range comes first and so does not see the put.
    let operations = std::iter::once(range(queue)).chain(entry.puts());
    Txn::new()
        .when(
            [&terms.compares()[..], &[Compare::create_revision(entry.key, CompareOp::Equal, 0)]]
                .concat(),
        )
        .and_then(operations.collect::<Vec<_>>())
        .or_else(terms.reads())
}

/// The transaction that enters an empty queue only. Sent again, it does nothing.
pub(crate) fn enter_if_free(queue: &str, entry: NewEntry<'_>, terms: Terms<'_>) -> Txn {
    enter_all_if_free(std::iter::once((queue, entry)), terms).or_else(terms.reads())
}

/// As [`enter_if_free`], and tells who is there if the queue is not empty.
pub(crate) fn enter_or_list(queue: &str, entry: NewEntry<'_>, terms: Terms<'_>) -> Txn {
    enter_all_if_free(std::iter::once((queue, entry)), terms)
        .or_else([&terms.reads()[..], &[range(queue)]].concat())
}

/// As [`enter_if_free`] for several queues: all or none.
pub(crate) fn enter_all<'a>(
    entries: impl Iterator<Item = (&'a str, NewEntry<'a>)>,
    terms: Terms<'_>,
) -> Txn {
    enter_all_if_free(entries, terms).or_else(terms.reads())
}

fn enter_all_if_free<'a>(
    entries: impl Iterator<Item = (&'a str, NewEntry<'a>)>,
    terms: Terms<'_>,
) -> Txn {
    let (mut free, mut puts) = (terms.compares().to_vec(), Vec::new());
    for (queue, entry) in entries {
        free.push(Compare::create_revision(queue, CompareOp::Equal, 0).with_prefix());
        puts.extend(entry.puts());
    }
    Txn::new().when(free).and_then(puts)
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

/// As [`remove`], as long as the entry lives by this lease: one that was left to another process,
/// or that another has adopted, stays.
pub(crate) fn remove_of(lease: i64, key: &str, revision: i64) -> Txn {
    let lives = Compare::lease(key, CompareOp::Equal, lease);
    Txn::new().when([stands(key, revision), lives]).and_then(delete_entry(key))
}

/// Whether an entry is still the one that was seen.
pub(crate) fn stands(key: &str, revision: i64) -> Compare {
    Compare::create_revision(key, CompareOp::Equal, revision)
}

/// Deletes an entry and what belongs to it.
pub(crate) fn delete_entry(key: &str) -> Vec<TxnOp> {
    let note = is_candidate(key).then(|| TxnOp::delete(keys::note(key), None));
    std::iter::once(TxnOp::delete(key, Some(with_belongings(key)))).chain(note).collect()
}

fn is_candidate(key: &str) -> bool {
    role(key.as_bytes()) == Role::Candidate
}

fn with_belongings(key: &str) -> DeleteOptions {
    DeleteOptions::new().with_range(end_of_entry(key))
}

/// What one of these came to.
#[derive(Debug)]
pub(crate) enum Outcome {
    Entered(Entered),
    /// It did nothing: these were there, as far as it looked.
    Found(Vec<Place>),
    /// It did nothing: its epoch is over.
    Over,
    /// It did nothing: the token floor is another one.
    Raised(Record),
}

/// What one of these came to that was sent on these terms.
pub(crate) fn entered(answer: TxnResponse, terms: Terms<'_>) -> Result<Outcome, Failure> {
    let (succeeded, revision) = (answer.succeeded(), revision(&answer)?);
    let header = Header::of(answer.header());
    let mut ranges = ranges(answer);
    if !succeeded {
        let mut next = || ranges.next().map(|range| range.kvs);
        let (epoch, floor) = (epoch::found(next()), next().unwrap_or_default());
        let floor = Record::read(floor.first())?;
        if epoch != terms.guard.epoch {
            return Ok(Outcome::Over);
        } else if !floor.is_same(terms.floor.1) {
            return Ok(Outcome::Raised(floor));
        }
    }
    let found = ranges.next().map(|range| places(range.kvs)).unwrap_or_default();
    Ok(match succeeded {
        true => Outcome::Entered(Entered { header, revision, before: found }),
        false => Outcome::Found(found),
    })
}

/// Where an attempt's entry stands, if an earlier sending has made it.
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
    let all = places(answer.0.kvs);
    let own = all.iter().find(|place| place.key == key.as_bytes());
    let Some(revision) = own.map(|place| place.revision) else { return Ok(None) };
    let before = all.into_iter().filter(|place| place.revision < revision).collect();
    Ok(Some(Entered { header, revision, before }))
}

/// The create revisions of entries; `None` for those that do not stand. A read of several in one
/// transaction may crash the member if the client leaves (see [`reads`](crate::wire::reads)).
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

pub(crate) fn revision(answer: &TxnResponse) -> Result<i64, Failure> {
    answer.header().map(|header| header.revision()).ok_or(Failure::senseless("no header"))
}

pub(crate) fn ranges(answer: TxnResponse) -> impl Iterator<Item = PbRangeResponse> {
    answer.0.responses.into_iter().filter_map(|op| match op.response {
        Some(PbTxnOpResponse::ResponseRange(range)) => Some(range),
        _ => None,
    })
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

/// Sends removals, several in one transaction. Answers which of them found what they were to
/// remove; nothing of the others is there any more.
pub(crate) async fn remove_all(
    connection: &Connection,
    mut removals: Vec<Txn>,
    give_up: impl Fn() -> bool,
) -> Result<Vec<bool>, Failure> {
    let alone = removals.len() == 1;
    let txn = match removals.pop() {
        None => return Ok(Vec::new()),
        Some(only) if alone => only,
        Some(last) => {
            removals.push(last);
            Txn::new().and_then(removals.into_iter().map(TxnOp::txn).collect::<Vec<_>>())
        }
    };
    let answer = connection.insist(give_up, |member| send_txn(member, &txn)).await.result?;
    if alone {
        return Ok(vec![answer.succeeded()]);
    }
    let removed = |op: PbResponseOp| match op.response {
        Some(PbTxnOpResponse::ResponseTxn(txn)) => Some(txn.succeeded),
        _ => None,
    };
    Ok(answer.0.responses.into_iter().filter_map(removed).collect())
}

/// Removes what belongs to an entry that is gone, and had this create revision. The key must not be
/// in use.
pub(crate) async fn remove_belongings(
    connection: &Connection,
    key: &str,
    revision: i64,
    give_up: impl Fn() -> bool,
) -> Result<(), Failure> {
    let options = GetOptions::new().with_keys_only().with_range(end_of_entry(key));
    let found = connection.insist(&give_up, |member| {
        let (mut kv, key, options) = (member.kv.clone(), key.to_owned(), options.clone());
        async move { kv.get(key, Some(options)).await }
    });
    let found = found.await.result?.0.kvs.into_iter();
    let marks = found.filter(|kv| role(&kv.key).kind().is_none());
    // A note is written with its entry.
    let note = is_candidate(key).then(|| remove_written(keys::note(key).as_bytes(), revision));
    let removals = marks.map(|kv| remove_written(&kv.key, kv.mod_revision)).chain(note).collect();
    remove_all(connection, removals, give_up).await.map(drop)
}

/// The transaction that deletes a key if it was last written at this revision.
pub(crate) fn remove_written(key: &[u8], revision: i64) -> Txn {
    Txn::new()
        .when([Compare::mod_revision(key, CompareOp::Equal, revision)])
        .and_then([TxnOp::delete(key, None)])
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
    // The leader answers it by its own clock, also when it is cut off.
    let left = connection.look(Word::Member, ask).await?.ttl();
    Ok(u64::try_from(left).ok().map(Duration::from_secs))
}

/// Whether an entry is there, by the word of the whole cluster.
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
