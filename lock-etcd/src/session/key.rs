//! The key of a session: how it is made, and its epoch, which makes late requests fail.
//!
//! An acquiring transaction that is not answered may be carried out at any later time, even after
//! its attempt was resolved on another connection and is over. Its session may live on, and its key
//! may be free. So every acquiring transaction compares its session's *epoch*: the modification
//! revision of the session's key. After an unanswered transaction the epoch is raised before
//! anything else is sent for that attempt: the key is written once more, and a request from an
//! earlier epoch does nothing when it arrives.
//!
//! Revisions only rise, so no epoch comes twice. A raise that arrives late compares the epoch that
//! it was to end, and does nothing. So a key that was deleted is never made again: a raise of the
//! [token floor](crate::layout::floor) deletes it, and no attempt enters in the session any more.

use etcd_client::{Txn, TxnOp};
use tokio::sync::RwLock;

use crate::{
    error::Failure,
    layout::{floor::Record, keys::Keys},
    wire::{
        connection::{Connection, GiveUp, Word},
        requests::{Guard, commit, firsts, found_epoch, put, ranges, revision, send_txn},
    },
};

/// The epoch of a session whose key is gone.
pub(crate) const GONE: i64 = 0;

/// Makes the key of a session, and reads the token floor, in one transaction: a raise deletes the
/// key, or the session counts from what was raised. Returns when the key was made.
pub(super) async fn make_key(
    connection: &Connection,
    layout: &Keys,
    lease: i64,
) -> Result<(i64, Record), Failure> {
    let make = put(&layout.session(lease), lease, b"");
    let txn = Txn::new().and_then([make, TxnOp::get(layout.floor(), None)]);
    let answer = connection.call(Word::Leader, |member| send_txn(member, &txn)).await?;
    let made = revision(answer.header())?;
    let floor = firsts(answer).next().flatten();
    Ok((made, Record::read(floor.as_ref())?))
}

/// The epoch of one session. Nothing is read while it is being raised: a request sent in between
/// would be in vain.
pub(crate) struct Epoch {
    known: RwLock<i64>,
}

impl Epoch {
    /// The epoch of a session whose key was made at this revision.
    pub(crate) fn new(made: i64) -> Self {
        Self { known: RwLock::new(made) }
    }

    /// Returns the epoch; `None` while it is being raised.
    pub(crate) fn known(&self) -> Option<i64> {
        self.known.try_read().ok().map(|epoch| *epoch)
    }

    pub(crate) async fn current(&self) -> i64 {
        *self.known.read().await
    }

    /// Ends the epoch `old`, unless it is over. One request serves all attempts that want it. Returns
    /// the current epoch: an earlier sending may have begun it, or it is [`GONE`].
    pub(crate) async fn raise(
        &self,
        old: i64,
        connection: &Connection,
        key: &str,
        lease: i64,
        give_up: GiveUp<'_>,
    ) -> Result<i64, Failure> {
        let mut epoch = self.known.write().await;
        if *epoch == old {
            let txn = raising(Guard { key, epoch: old }, lease);
            let answer = commit(connection, &txn, &mut false, give_up).await?;
            *epoch = match answer.succeeded() {
                true => revision(answer.header())?,
                false => found_epoch(ranges(answer).next()),
            };
        }
        Ok(*epoch)
    }
}

fn raising(guard: Guard<'_>, lease: i64) -> Txn {
    Txn::new()
        .when([guard.compare()])
        .and_then([put(guard.key, lease, b"")])
        .or_else([guard.read()])
}

#[cfg(test)]
mod tests {
    use etcd_client::Client;

    use super::*;

    #[tokio::test]
    async fn a_late_raise_does_not_bring_an_epoch_back() {
        let etcd = lock_lab::Etcd::builder().in_memory().start().await.unwrap();
        let mut client = Client::connect([etcd.addr().to_string()], None).await.unwrap();
        let lease = client.lease_grant(60, None).await.unwrap().id();
        let made = client.txn(Txn::new().and_then([put("#1", lease, b"")])).await.unwrap();
        let made = revision(made.header()).unwrap();
        let first = raising(Guard { key: "#1", epoch: made }, lease);
        let raised = client.txn(first.clone()).await.unwrap();
        assert!(raised.succeeded());
        let epoch = revision(raised.header()).unwrap();
        assert!(client.txn(raising(Guard { key: "#1", epoch }, lease)).await.unwrap().succeeded());
        for late in [first, raising(Guard { key: "#1", epoch }, lease)] {
            let answer = client.txn(late).await.unwrap();
            assert!(!answer.succeeded());
            assert!(found_epoch(ranges(answer).next()) > epoch);
        }
        client.delete("#1", None).await.unwrap();
        let answer = client.txn(raising(Guard { key: "#1", epoch }, lease)).await.unwrap();
        assert!(!answer.succeeded());
        assert_eq!(found_epoch(ranges(answer).next()), GONE);
    }
}
