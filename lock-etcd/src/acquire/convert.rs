//! The transactions that change the kind of an entry.

use etcd_client::{Compare, CompareOp, GetOptions, PutOptions, Txn, TxnOp};
use uuid::Uuid;

use crate::{
    error::Failure,
    layout::{
        keys::{end_of_entry, end_of_prefix, mark, signal},
        note,
    },
    session::attempt::OwnEntry,
    wire::{
        answer::{Header, firsts, header},
        connection::GiveUp,
        removals::delete_entry,
        requests::{commit, put, stands},
    },
};

/// Marks an entry as shared, if it still stands. It keeps its create revision, which is its place
/// in the queue, also for foreign clients. Sending it again changes nothing.
pub(crate) fn downgrade(key: &str, lease: i64, revision: i64) -> Txn {
    Txn::new()
        .when([stands(key, revision)])
        .and_then([put(&mark(key), lease, b""), put(&signal(key), lease, b"")])
}

/// The replacement of an entry by an exclusive one.
pub(crate) struct Upgrade<'a> {
    pub(crate) old: &'a OwnEntry,
    /// The old entry's create revision.
    pub(crate) revision: i64,
    pub(crate) new: &'a OwnEntry,
    pub(crate) note: &'a [u8],
    pub(crate) attempt: Uuid,
}

/// The result of an upgrade.
#[derive(Clone, Copy, Debug)]
pub(crate) enum Upgraded {
    /// The old entry is gone. The new one stands since this revision.
    Done(i64, Header),
    /// Another entry is there, or the token floor was raised and the old entry is being ended. The
    /// new entry will never exist, and the old one stood at this revision.
    Busy(i64),
    /// The old entry is gone. The new one will never exist.
    Gone,
}

impl Upgrade<'_> {
    /// Upgrades if no other entry is in the queue. `in_doubt`: a try to put the same entry there
    /// was not answered, at first an earlier one.
    ///
    /// An unanswered sending must not take effect after we have said that nothing changed. All
    /// sendings compare the old entry's last modification, so writing it once more ends them.
    pub(crate) async fn send(
        &self,
        in_doubt: &mut bool,
        give_up: GiveUp<'_>,
    ) -> Result<Upgraded, Failure> {
        let (connection, mut modified) = (&self.old.store.connection, self.revision);
        loop {
            let answer = commit(connection, &self.txn(modified), in_doubt, give_up).await?;
            let header = header(answer.header())?;
            if answer.succeeded() {
                return Ok(Upgraded::Done(header.revision, header));
            }
            let mut found = firsts(answer);
            let (new, old) = (found.next().flatten(), found.next().flatten());
            let new = new.filter(|kv| note::attempt(&kv.value) == Some(self.attempt));
            if let Some(new) = new {
                return Ok(Upgraded::Done(new.create_revision, header));
            }
            match old.filter(|kv| kv.create_revision == self.revision) {
                None => return Ok(Upgraded::Gone),
                // It was written once more to end an earlier try.
                Some(old) if old.mod_revision != modified => modified = old.mod_revision,
                Some(_) if !*in_doubt => return Ok(Upgraded::Busy(header.revision)),
                Some(_) => {
                    commit(connection, &self.touch(), &mut false, give_up).await?;
                    *in_doubt = false;
                }
            }
        }
    }

    fn txn(&self, modified: i64) -> Txn {
        let OwnEntry { store, session, queue, key: old, .. } = self.old;
        let (new, after) = (&*self.new.key, end_of_entry(old));
        let nobody = |from: &str, to: Vec<u8>| {
            Compare::create_revision(from, CompareOp::Equal, 0).with_range(to)
        };
        Txn::new()
            .when([
                stands(old, self.revision),
                Compare::mod_revision(&**old, CompareOp::Equal, modified),
                // The new entry must not count from an earlier floor than entries before it.
                session.keeps(&store.layout),
                nobody(queue, old.as_bytes().to_vec()),
                nobody(&after, end_of_prefix(queue.as_bytes())),
            ])
            .and_then([vec![put(new, session.lease, self.note)], delete_entry(old)].concat())
            .or_else([
                TxnOp::get(new, None),
                TxnOp::get(&**old, Some(GetOptions::new().with_keys_only())),
            ])
    }

    fn touch(&self) -> Txn {
        let unchanged = PutOptions::new().with_ignore_value().with_ignore_lease();
        let (key, created) = (&*self.old.key, self.revision);
        Txn::new().when([stands(key, created)]).and_then([TxnOp::put(key, b"", Some(unchanged))])
    }
}
