//! The requests that make an entry, and their results; the parts of answers.

use etcd_client::{
    Compare, CompareOp, GetOptions, PutOptions, ResponseHeader, SortOrder, SortTarget, Txn, TxnOp,
    TxnResponse,
    proto::{PbKeyValue, PbRangeResponse, PbResponseHeader, PbTxnOpResponse},
};
use lock_core::{Facts, Kind};

use crate::{
    error::Failure,
    layout::{
        keys,
        listing::{Before, QueueEntry},
    },
    wire::{
        connection::{Connection, GiveUp},
        member::{Answer, Member},
    },
};

/// How many entries before its own an exclusive attempt looks at. With all of them, the answers to
/// a thousand clients would have half a million entries. Behind fewer, the events of each release
/// cost less than the watches and the list of an attempt that waits for its turn to come near.
pub(crate) const LAST: i64 = 16;

/// The header of an answer: the member that answered, its cluster and term, and the revision.
pub(crate) type Header = PbResponseHeader;

/// Returns what a header tells beside a grant.
pub(crate) fn facts(header: &Header) -> Facts {
    Facts::new([
        ("revision", header.revision.unsigned_abs()),
        ("cluster_id", header.cluster_id),
        ("member_id", header.member_id),
        ("raft_term", header.raft_term),
    ])
}

/// An attempt's entry as it is in the store.
pub(crate) struct Entered {
    pub(crate) header: Header,
    /// Its create revision.
    pub(crate) revision: i64,
    pub(crate) before: Before,
}

/// A new entry.
#[derive(Clone, Copy, Debug)]
pub(crate) struct NewEntry<'a> {
    pub(crate) key: &'a str,
    pub(crate) lease: i64,
    pub(crate) note: &'a [u8],
    /// A candidate's value for observers.
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

/// The epoch that an acquiring transaction compares.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Guard<'a> {
    pub(crate) key: &'a str,
    pub(crate) epoch: i64,
}

impl Guard<'_> {
    pub(crate) fn compare(&self) -> Compare {
        Compare::mod_revision(self.key, CompareOp::Equal, self.epoch)
    }

    /// Reads the current epoch.
    pub(crate) fn read(&self) -> TxnOp {
        TxnOp::get(self.key, Some(GetOptions::new().with_keys_only()))
    }
}

/// The transaction that queues up, and lists the entries before it: for an exclusive one, the last
/// [`LAST`] of them. Sent again, it does nothing.
pub(crate) fn queue_up(queue: &str, kind: Kind, entry: NewEntry<'_>, guard: Guard<'_>) -> Txn {
    let before = match kind {
        Kind::Exclusive => TxnOp::get(queue, Some(last(LAST))),
        _ => range(queue),
    };
    // The range comes first, so it does not see the put.
    let operations = std::iter::once(before).chain(entry.puts());
    Txn::new()
        .when([guard.compare(), is_free(entry.key)])
        .and_then(operations.collect::<Vec<_>>())
        .or_else([guard.read()])
}

/// A comparison that is true if the slot of a key is free: no entry of another kind has it, either,
/// since [what belongs](keys::end_of_entry) to an entry is removed with it.
fn is_free(key: &str) -> Compare {
    let slot = keys::slot(key);
    Compare::create_revision(slot, CompareOp::Equal, 0).with_range(keys::end_of_entry(slot))
}

/// The transaction that enters empty queues only: all or none. Otherwise it lists the entries of
/// one of them, if any. Sent again, it does nothing.
pub(crate) fn enter_if_free<'a>(
    entries: impl IntoIterator<Item = (&'a str, NewEntry<'a>)>,
    listed: Option<&str>,
    guard: Guard<'_>,
) -> Txn {
    let (mut free, mut puts) = (vec![guard.compare()], Vec::new());
    for (queue, entry) in entries {
        free.push(Compare::create_revision(queue, CompareOp::Equal, 0).with_prefix());
        puts.extend(entry.puts());
    }
    let reads = std::iter::once(guard.read()).chain(listed.map(range));
    Txn::new().when(free).and_then(puts).or_else(reads.collect::<Vec<_>>())
}

fn range(queue: &str) -> TxnOp {
    TxnOp::get(queue, Some(GetOptions::new().with_prefix().with_keys_only()))
}

/// Reads the last keys of a queue, in order of their create revisions.
pub(crate) fn last(limit: i64) -> GetOptions {
    let keys = GetOptions::new().with_prefix().with_keys_only();
    keys.with_sort(SortTarget::Create, SortOrder::Descend).with_limit(limit)
}

pub(crate) fn put(key: &str, lease: i64, value: &[u8]) -> TxnOp {
    TxnOp::put(key, value, Some(PutOptions::new().with_lease(lease)))
}

/// A comparison that is true if an entry is still the one that was seen.
pub(crate) fn stands(key: &str, revision: i64) -> Compare {
    Compare::create_revision(key, CompareOp::Equal, revision)
}

/// Returns the epoch from the result of [`Guard::read`].
pub(crate) fn found_epoch(found: Option<PbRangeResponse>) -> i64 {
    found.and_then(|range| range.kvs.first().map(|kv| kv.mod_revision)).unwrap_or_default()
}

/// The result of an acquiring transaction.
pub(crate) enum Outcome {
    Entered(Entered),
    /// It did nothing: these entries were there, as far as it looked.
    Found(Vec<QueueEntry>),
    /// It did nothing: its epoch is over.
    Over,
}

/// Returns the result of an acquiring transaction that was sent with this guard.
pub(crate) fn entered(answer: TxnResponse, guard: Guard<'_>) -> Result<Outcome, Failure> {
    let (succeeded, header) = (answer.succeeded(), header(answer.header())?);
    let mut ranges = ranges(answer);
    if !succeeded && found_epoch(ranges.next()) != guard.epoch {
        return Ok(Outcome::Over);
    }
    let found = ranges.next().map(Before::read).unwrap_or_default();
    Ok(match succeeded {
        true => Outcome::Entered(Entered { header, revision: header.revision, before: found }),
        false => Outcome::Found(found.entries),
    })
}

/// Fails if etcd does not accept the login: it grants leases without one. The rights of the login
/// are not checked here.
pub(crate) async fn check_login(member: &Member) -> Answer<()> {
    let anything = GetOptions::new().with_count_only().with_serializable();
    match member.client.kv_client().get("\0", Some(anything)).await {
        Err(etcd_client::Error::GRpcStatus(status))
            if status.code() == tonic::Code::PermissionDenied =>
        {
            Ok(())
        }
        answer => answer.map(drop),
    }
}

/// Sends a transaction until its answer is definite: see [`Connection::insist`].
pub(crate) async fn commit(
    connection: &Connection,
    txn: &Txn,
    in_doubt: &mut bool,
    give_up: GiveUp<'_>,
) -> Result<TxnResponse, Failure> {
    connection.insist(in_doubt, give_up, |member| send_txn(member, txn)).await
}

/// Sends a transaction.
pub(crate) fn send_txn(
    member: &Member,
    txn: &Txn,
) -> impl Future<Output = Answer<TxnResponse>> + Send + use<> {
    let (mut kv, txn) = (member.client.kv_client(), txn.clone());
    async move { kv.txn(txn).await }
}

pub(crate) fn header(header: Option<&ResponseHeader>) -> Result<Header, Failure> {
    header.map(|header| header.0).ok_or(Failure::senseless("no header"))
}

pub(crate) fn revision(of: Option<&ResponseHeader>) -> Result<i64, Failure> {
    header(of).map(|header| header.revision)
}

/// Returns the first key of each read of a transaction.
pub(crate) fn firsts(answer: TxnResponse) -> impl Iterator<Item = Option<PbKeyValue>> {
    ranges(answer).map(|range| range.kvs.into_iter().next())
}

pub(crate) fn ranges(answer: TxnResponse) -> impl Iterator<Item = PbRangeResponse> {
    answer.0.responses.into_iter().filter_map(|op| match op.response {
        Some(PbTxnOpResponse::ResponseRange(range)) => Some(range),
        _ => None,
    })
}
