//! The requests that remove entries and what belongs to them.

use etcd_client::{
    Compare, CompareOp, DeleteOptions, GetOptions, Txn, TxnOp,
    proto::{PbResponseOp, PbTxnOpResponse},
};

use crate::{
    error::Failure,
    layout::keys::{self, Role, end_of_entry, role},
    wire::{
        connection::{Connection, GiveUp},
        reads,
        requests::{commit, stands},
    },
};

/// How many entries are removed in one transaction; etcd allows 128 operations.
const AT_ONCE: usize = 50;

/// The transaction that removes an entry and what belongs to it, if the entry is still the one that
/// was seen. Sent again, it does nothing.
pub(crate) fn remove(key: &str, revision: i64) -> Txn {
    Txn::new().when([stands(key, revision)]).and_then(delete_entry(key))
}

/// Same as [`remove`], but only while the entry lives by this lease. An entry that was left to
/// another process, or that another has adopted, stays.
pub(crate) fn remove_of(lease: i64, key: &str, revision: i64) -> Txn {
    let lives = Compare::lease(key, CompareOp::Equal, lease);
    Txn::new().when([stands(key, revision), lives]).and_then(delete_entry(key))
}

/// Deletes an entry and what belongs to it.
pub(crate) fn delete_entry(key: &str) -> Vec<TxnOp> {
    let note = is_candidate(key).then(|| TxnOp::delete(keys::note(key), None));
    let with_belongings = DeleteOptions::new().with_range(end_of_entry(key));
    std::iter::once(TxnOp::delete(key, Some(with_belongings))).chain(note).collect()
}

fn is_candidate(key: &str) -> bool {
    role(key.as_bytes()) == Role::Candidate
}

/// What to do next, or the items that were refused, and why.
pub(crate) type Done<T> = Result<Vec<T>, (Vec<T>, Failure)>;

/// Does this `work` on all items, many at a time. A refused item must not keep the others from
/// being done, so they are done in halves then. Returns the items that are refused, and why.
pub(crate) async fn in_batches<T, F: Future<Output = Done<T>>>(
    items: Vec<T>,
    work: impl Fn(Vec<T>) -> F,
) -> (Vec<T>, Result<(), Failure>) {
    let (mut batches, mut refused, mut why) = (vec![items], Vec::new(), Ok(()));
    while let Some(mut batch) = batches.pop() {
        if batch.len() > AT_ONCE {
            batches.push(batch.split_off(AT_ONCE));
        }
        match work(batch).await {
            Ok(next) if next.is_empty() => {}
            Ok(next) => batches.push(next),
            Err((mut batch, failure)) if batch.len() > 1 && failure.concerns_a_part() => {
                let rest = batch.split_off(batch.len() / 2);
                batches.extend([batch, rest]);
            }
            Err((batch, failure)) => {
                refused.extend(batch);
                why = Err(failure);
            }
        }
    }
    (refused, why)
}

/// Sends removals, several in one transaction. Returns which of them found their entry. The entries
/// of the others were gone already.
pub(crate) async fn remove_all(
    connection: &Connection,
    mut removals: Vec<Txn>,
    give_up: GiveUp<'_>,
) -> Result<Vec<bool>, Failure> {
    let alone = removals.len() == 1;
    let txn = match alone.then(|| removals.pop()).flatten() {
        Some(only) => only,
        None if removals.is_empty() => return Ok(Vec::new()),
        None => Txn::new().and_then(removals.into_iter().map(TxnOp::txn).collect::<Vec<_>>()),
    };
    let answer = commit(connection, &txn, &mut false, give_up).await?;
    if alone {
        return Ok(vec![answer.succeeded()]);
    }
    let removed = |op: PbResponseOp| match op.response {
        Some(PbTxnOpResponse::ResponseTxn(txn)) => Some(txn.succeeded),
        _ => None,
    };
    Ok(answer.0.responses.into_iter().filter_map(removed).collect())
}

/// Removes what belongs to an entry that is gone, and that had this create revision. The key must
/// not be in use.
pub(crate) async fn remove_belongings(
    connection: &Connection,
    key: &str,
    revision: i64,
    give_up: GiveUp<'_>,
) -> Result<(), Failure> {
    let options = GetOptions::new().with_keys_only().with_range(end_of_entry(key));
    let found = reads::insist(connection, key, &options, give_up).await?.0.kvs.into_iter();
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
