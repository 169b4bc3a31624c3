//! Writing an entry once more, by or for another attempt.

use std::sync::Arc;

use etcd_client::{Compare, CompareOp, Txn, TxnOp, TxnResponse};
use uuid::Uuid;

use crate::{
    error::Failure,
    layout::note,
    session::{Session, store::Store},
    wire::{
        answer::{Header, ranges, revision},
        connection::GiveUp,
        removals::{delete_entry, remove_written},
        requests::{commit, put, stands},
    },
};

/// The rewriting of an entry, by or for another attempt.
pub(super) struct Rewrite {
    pub(super) key: Arc<str>,
    /// Its create revision.
    pub(super) revision: i64,
    /// Its last modification.
    pub(super) modified: i64,
    pub(super) lease: i64,
    /// The description of the holder and the attempt in its note.
    pub(super) holder: Arc<str>,
    pub(super) attempt: Uuid,
    /// The session by which it lives before or after that. The entry is rewritten only as long as
    /// the key of the session stands, so not after a raise of the token floor.
    pub(super) session: Arc<Session>,
}

/// The result of a rewriting.
pub(super) enum Rewritten {
    /// Written at this revision, now or by an earlier sending.
    Done(i64, Header),
    /// Another attempt has written it.
    Other,
    Gone,
    /// It did nothing: the key of the session is gone.
    Outdated,
}

impl Rewrite {
    /// Whether the entry is as it was seen.
    fn compares(&self) -> [Compare; 2] {
        let unchanged = Compare::mod_revision(&*self.key, CompareOp::Equal, self.modified);
        [stands(&self.key, self.revision), unchanged]
    }

    pub(super) async fn send(
        &self,
        store: &Store,
        in_doubt: &mut bool,
        give_up: GiveUp<'_>,
    ) -> Result<Rewritten, Failure> {
        let note = note::write(&self.holder, self.attempt, &self.session.floor);
        let [stands, unchanged] = self.compares();
        let txn = Txn::new()
            .when([stands, unchanged, self.session.keeps(&store.layout)])
            .and_then([put(&self.key, self.lease, &note)])
            .or_else(self.reads(store));
        let answer = commit(&store.connection, &txn, in_doubt, give_up).await?;
        match answer.succeeded() {
            true => Ok(Rewritten::Done(revision(answer.header())?, Header::of(answer.header()))),
            false => self.found(answer),
        }
    }

    fn reads(&self, store: &Store) -> [TxnOp; 2] {
        let session = store.layout.session(self.session.lease);
        [TxnOp::get(&*self.key, None), TxnOp::get(session, None)]
    }

    fn found(&self, answer: TxnResponse) -> Result<Rewritten, Failure> {
        let header = Header::of(answer.header());
        let mut found = ranges(answer).map(|range| range.kvs.into_iter().next());
        let (entry, session) = (found.next().flatten(), found.next().flatten());
        let entry = entry.filter(|kv| kv.create_revision == self.revision);
        // It may have been written even if the floor was raised since.
        if let Some(kv) = &entry
            && note::attempt(&kv.value) == Some(self.attempt)
        {
            return Ok(Rewritten::Done(kv.mod_revision, header));
        }
        Ok(match entry {
            _ if session.is_none() => Rewritten::Outdated,
            None => Rewritten::Gone,
            Some(_) => Rewritten::Other,
        })
    }

    /// Removes the entry if it is as it was seen, or as this has written it. After that, nothing
    /// that was sent for it does anything.
    pub(super) async fn undo(&self, store: &Store, give_up: GiveUp<'_>) -> Result<(), Failure> {
        let (remove, connection) = (delete_entry(&self.key), &store.connection);
        let txn = Txn::new().when(self.compares()).and_then(remove).or_else(self.reads(store));
        let answer = commit(connection, &txn, &mut false, give_up).await?;
        if !answer.succeeded()
            && let Rewritten::Done(modified, _) = self.found(answer)?
        {
            let remove = remove_written(self.key.as_bytes(), modified);
            commit(connection, &remove, &mut false, give_up).await?;
        }
        Ok(())
    }
}
