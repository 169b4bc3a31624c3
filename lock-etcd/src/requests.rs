//! The requests and their answers, taken apart.

use std::sync::Arc;

use etcd_client::{
    Compare, CompareOp, GetOptions, GetResponse, SortOrder, SortTarget, Txn, TxnOp, TxnResponse,
    proto::{PbRangeResponse, PbTxnOpResponse},
};

use crate::{
    connection::{Connection, Insisted, Member},
    error::Failure,
    queue::Place,
};

type Answer<T> = Result<T, etcd_client::Error>;

/// An attempt's entry as the store has it.
#[derive(Debug)]
pub(crate) struct Entered {
    /// Its create revision.
    pub(crate) revision: i64,
    /// The entries before it.
    pub(crate) before: Vec<Place>,
}

/// The transaction that queues up, and tells who was there before. Sent again, it does nothing but
/// tell where the entry stands.
pub(crate) fn queue_up(queue: &str, key: &str, lease: i64, value: &[u8]) -> Txn {
    Txn::new()
        .when([Compare::create_revision(key, CompareOp::Equal, 0)])
        // The range comes first and so does not see the put.
        .and_then([range(queue), put(key, lease, value)])
        .or_else([get(key), range(queue)])
}

/// The transaction that enters an empty queue only. Sent again, it tells whether the first sending
/// did.
pub(crate) fn enter_if_free(queue: &str, key: &str, lease: i64, value: &[u8]) -> Txn {
    Txn::new()
        .when([Compare::create_revision(queue, CompareOp::Equal, 0).with_prefix()])
        .and_then([put(key, lease, value)])
        .or_else([get(key)])
}

fn range(queue: &str) -> TxnOp {
    TxnOp::get(queue, Some(GetOptions::new().with_prefix().with_keys_only()))
}

fn get(key: &str) -> TxnOp {
    TxnOp::get(key, None)
}

fn put(key: &str, lease: i64, value: &[u8]) -> TxnOp {
    TxnOp::put(key, value, Some(etcd_client::PutOptions::new().with_lease(lease)))
}

/// The answer to [`queue_up`]; `None` if the key is some other attempt's.
pub(crate) fn queued_up(answer: TxnResponse, value: &[u8]) -> Result<Option<Entered>, Failure> {
    let (fresh, revision) = (answer.succeeded(), revision(&answer)?);
    let mut ranges = ranges(answer);
    let mut next = || ranges.next().ok_or(NO_RANGE).map_err(Failure::senseless);
    if fresh {
        return Ok(Some(Entered { revision, before: places(next()?) }));
    }
    let Some(revision) = own(&next()?, value) else { return Ok(None) };
    let mut before = places(next()?);
    before.retain(|place| place.revision < revision);
    Ok(Some(Entered { revision, before }))
}

const NO_RANGE: &str = "no range in the answer";

/// The answer to [`enter_if_free`]; `None` if somebody else is there.
pub(crate) fn entered_if_free(
    answer: TxnResponse,
    value: &[u8],
) -> Result<Option<Entered>, Failure> {
    let revision = match answer.succeeded() {
        true => Some(revision(&answer)?),
        false => own(&first_range(answer)?, value),
    };
    Ok(revision.map(|revision| Entered { revision, before: Vec::new() }))
}

/// The create revision of the key, if it has this attempt's value.
fn own(range: &PbRangeResponse, value: &[u8]) -> Option<i64> {
    range.kvs.first().filter(|kv| kv.value == value).map(|kv| kv.create_revision)
}

fn revision(answer: &TxnResponse) -> Result<i64, Failure> {
    answer.header().map(|header| header.revision()).ok_or(Failure::senseless("no header"))
}

fn first_range(answer: TxnResponse) -> Result<PbRangeResponse, Failure> {
    ranges(answer).next().ok_or(NO_RANGE).map_err(Failure::senseless)
}

fn ranges(answer: TxnResponse) -> impl Iterator<Item = PbRangeResponse> {
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
    Ok(Lists { revision, queues: ranges(answer).map(places).collect() })
}

fn places(range: PbRangeResponse) -> Vec<Place> {
    range.kvs.into_iter().map(|kv| Place { revision: kv.create_revision, key: kv.key }).collect()
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

/// Deletes an attempt's entry. It is gone afterwards, whoever deleted it.
///
/// Deletes by key alone, which costs etcd half of what a transaction that compares first does. So
/// the key must not be used again before no sending of this can arrive any more.
pub(crate) async fn delete(
    connection: &Connection,
    key: &str,
    give_up: impl Fn() -> bool,
) -> Insisted<()> {
    connection
        .insist(give_up, |member| {
            let (mut kv, key) = (member.kv.clone(), key.to_owned());
            async move { kv.delete(key, None).await.map(drop) }
        })
        .await
}

/// A queue with its values, the holder first.
pub(crate) async fn inspect(connection: &Connection, queue: &str) -> Result<GetResponse, Failure> {
    let by_age = GetOptions::new().with_prefix().with_sort(SortTarget::Create, SortOrder::Ascend);
    connection
        .call(|member| {
            let (mut kv, queue) = (member.kv.clone(), queue.to_owned());
            async move { kv.get(queue, Some(by_age)).await }
        })
        .await
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

/// Makes a lease with an id of our own, so that a lost answer does not leave a second one. The
/// answer is the TTL that etcd granted; `None` if an earlier sending had made it.
pub(crate) async fn grant(
    connection: &Connection,
    lease: i64,
    seconds: u64,
    give_up: impl Fn() -> bool,
) -> Result<Option<u64>, Failure> {
    let insisted = connection.insist(give_up, |member| send_grant(member, lease, seconds)).await;
    match insisted.result {
        Err(failure) if insisted.ambiguous && failure.to_string().contains("already exists") => {
            Ok(None)
        }
        result => result.map(Some),
    }
}

/// Makes a lease and answers the TTL that etcd granted.
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
