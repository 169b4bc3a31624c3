//! Work of a held lock is marked as done for a period.
//!
//! The mark is a key without a lease: a new leader of etcd gives each lease its whole TTL again, so
//! a mark that lives by one could outlast its period. It has the end of the period as a time of
//! day, which each reader compares with its own clock.

use etcd_client::{Txn, TxnOp};
use lock_core::{Mark, keep::marks, wall_clock};

use crate::{
    error::Failure,
    session::{
        attempt::{Hold, OwnEntry},
        store::Store,
    },
    wire::{
        connection::GiveUp,
        reads, removals,
        requests::{commit, stands},
    },
};

/// How many marks whose period is over are removed at once; etcd allows 128 operations.
const AT_ONCE: usize = 50;

impl Hold {
    /// Writes the mark if the entry stands. Returns whether it does.
    pub(crate) async fn mark(
        &self,
        mark: &Mark,
        in_doubt: &mut bool,
        give_up: GiveUp<'_>,
    ) -> Result<bool, Failure> {
        let OwnEntry { store, queue, key, .. } = &self.entry;
        let put = TxnOp::put(store.layout.done(queue), marks::text(mark), None);
        let txn = Txn::new().when([stands(key, self.revision)]).and_then([put]);
        let stood = commit(&store.connection, &txn, in_doubt, give_up).await?.succeeded();
        if stood {
            // The mark stands all the same. The next one tries again.
            drop(remove_ended(store, give_up).await);
        }
        Ok(stood)
    }
}

/// Removes marks whose period is over, unless they were written anew meanwhile.
async fn remove_ended(store: &Store, give_up: GiveUp<'_>) -> Result<(), Failure> {
    let (found, now) = (reads::read(&store.connection, &store.layout.dones()).await?, wall_clock());
    let has_ended = |text: &[u8]| marks::read(text).is_some_and(|mark| mark.ends_at <= now);
    let ended = found
        .0
        .kvs
        .iter()
        .filter(|kv| store.layout.done_name(&kv.key).is_some() && has_ended(&kv.value));
    let txns = ended.take(AT_ONCE).map(|kv| removals::remove_written(&kv.key, kv.mod_revision));
    removals::remove_all(&store.connection, txns.collect(), give_up).await.map(drop)
}
