//! How a held lock becomes shared, or exclusive, or gets another value.

use etcd_client::{Compare, CompareOp, GetOptions, PutOptions, Txn, TxnOp};
use lock_core::Kind;
use uuid::Uuid;

use crate::{
    error::Failure,
    layout::{
        keys::{self, Role, end_of_entry, end_of_prefix},
        listing::QueueEntry,
        note,
    },
    session::{
        Stake,
        attempt::{Form, Hold, OwnEntry},
    },
    wire::{
        connection::GiveUp,
        removals::{delete_entry, remove_written},
        requests::{Header, commit, firsts, header, put, revision, stands},
    },
};

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

impl Hold {
    /// Marks the entry as shared. It keeps its create revision, which is its place in the queue,
    /// also for foreign clients. Returns whether it still stands.
    pub(crate) async fn downgrade(
        &mut self,
        in_doubt: &mut bool,
        give_up: GiveUp<'_>,
    ) -> Result<bool, Failure> {
        if self.entry.is_shared() {
            return Ok(true);
        }
        self.entry.form = Form::PerhapsShared;
        let OwnEntry { store, session, queue, key, .. } = &self.entry;
        // Sent again, it changes nothing.
        let marks = [keys::mark(key), keys::signal(key)].map(|key| put(&key, session.lease, b""));
        let txn = Txn::new().when([stands(key, self.revision)]).and_then(marks);
        let answer = commit(&store.connection, &txn, in_doubt, give_up).await?;
        let signalled = revision(answer.header())?;
        if answer.succeeded() {
            let (revision, kind) = (self.revision, Kind::Shared);
            let shared = QueueEntry { revision, key: key.as_bytes().to_vec(), kind };
            store.watcher.names().downgraded(queue, &shared);
            self.signal(signalled);
            self.entry.form = Form::Shared;
        }
        Ok(answer.succeeded())
    }

    /// Signals the readers of other clients to list the queue.
    fn signal(&self, revision: i64) {
        let OwnEntry { store, session, key, .. } = &self.entry;
        let (connection, session) = (store.connection.clone(), session.clone());
        let signal = remove_written(keys::signal(key).as_bytes(), revision);
        store.runtime.spawn(async move {
            let give_up = || session.ended.is_cancelled();
            commit(&connection, &signal, &mut false, &give_up).await
        });
    }

    /// Replaces the entry with an exclusive one if no other is in the queue. The entry is not
    /// watched from then on. `holder`: the description in its note.
    pub(crate) async fn try_upgrade(
        &mut self,
        attempt: Uuid,
        holder: &str,
        in_doubt: &mut bool,
        give_up: GiveUp<'_>,
    ) -> Result<Upgraded, Failure> {
        // The upgrade itself deletes it, which is no loss.
        self.unwatch();
        self.stood = None;
        if self.entry.is_exclusive() {
            return Ok(Upgraded::Done(self.revision, self.entry.header));
        }
        let OwnEntry { store, session, queue, doubtful, .. } = &mut self.entry;
        let doubted = doubtful.is_some();
        let role = Role::Ours(Kind::Exclusive);
        let exclusive =
            || Box::new(OwnEntry::new(store, session.clone(), queue.clone(), role, attempt));
        let note = note::write(holder, attempt, &session.floor);
        let new = doubtful.get_or_insert_with(exclusive);
        new.set_stake(Stake::Doubtful(None));
        let key = new.key.clone();
        *in_doubt = doubted;
        let upgraded = self.upgrade(&key, &note, attempt, in_doubt, give_up).await;
        // In doubt it stays doubtful: another try, or the release, settles it.
        let settled = upgraded.is_ok() || !(*in_doubt || doubted);
        if let Some(mut new) = self.entry.doubtful.take_if(|_| settled) {
            // A refused upgrade leaves nothing.
            new.set_stake(Stake::Nothing);
            if let Ok(Upgraded::Done(revision, header)) = upgraded {
                new.answered(Stake::Entry(revision), header);
                self.entry.set_stake(Stake::Nothing);
                (self.revision, self.stood) = (revision, Some(revision));
                self.entry = *new;
            }
        }
        if let Ok(Upgraded::Busy(at)) = upgraded {
            self.stood = Some(at);
        }
        upgraded
    }

    /// Puts the entry `new` with its note in the place of this one if no other entry is in the queue.
    /// `in_doubt`: a try to do so was not answered, at first an earlier one.
    ///
    /// An unanswered sending must not take effect after we have said that nothing changed. All
    /// sendings compare the old entry's last modification, so writing it once more ends them.
    async fn upgrade(
        &self,
        new: &str,
        note: &[u8],
        attempt: Uuid,
        in_doubt: &mut bool,
        give_up: GiveUp<'_>,
    ) -> Result<Upgraded, Failure> {
        let (connection, mut modified) = (&self.entry.store.connection, self.revision);
        loop {
            let txn = self.upgrading(new, note, modified);
            let answer = commit(connection, &txn, in_doubt, give_up).await?;
            let header = header(answer.header())?;
            if answer.succeeded() {
                return Ok(Upgraded::Done(header.revision, header));
            }
            let mut found = firsts(answer);
            let (new, old) = (found.next().flatten(), found.next().flatten());
            let new = new.filter(|kv| note::attempt(&kv.value) == Some(attempt));
            if let Some(new) = new {
                return Ok(Upgraded::Done(new.create_revision, header));
            }
            match old.filter(|kv| kv.create_revision == self.revision) {
                None => return Ok(Upgraded::Gone),
                // It was written once more to end an earlier try.
                Some(old) if old.mod_revision != modified => modified = old.mod_revision,
                Some(_) if !*in_doubt => return Ok(Upgraded::Busy(header.revision)),
                Some(_) => {
                    commit(connection, &self.touching(), &mut false, give_up).await?;
                    *in_doubt = false;
                }
            }
        }
    }

    fn upgrading(&self, new: &str, note: &[u8], modified: i64) -> Txn {
        let OwnEntry { store, session, queue, key: old, .. } = &self.entry;
        let after = end_of_entry(old);
        let nobody = |from: &str, to: Vec<u8>| {
            Compare::create_revision(from, CompareOp::Equal, 0).with_range(to)
        };
        Txn::new()
            .when([
                stands(old, self.revision),
                Compare::mod_revision(&**old, CompareOp::Equal, modified),
                // The new entry must not count from an earlier floor than entries before it.
                session.stands(&store.layout),
                nobody(queue, old.as_bytes().to_vec()),
                nobody(&after, end_of_prefix(queue.as_bytes())),
            ])
            .and_then([vec![put(new, session.lease, note)], delete_entry(old)].concat())
            .or_else([
                TxnOp::get(new, None),
                TxnOp::get(&**old, Some(GetOptions::new().with_keys_only())),
            ])
    }

    fn touching(&self) -> Txn {
        let unchanged = PutOptions::new().with_ignore_value().with_ignore_lease();
        let (key, created) = (&*self.entry.key, self.revision);
        Txn::new().when([stands(key, created)]).and_then([TxnOp::put(key, b"", Some(unchanged))])
    }

    /// Publishes a new value. Returns whether the entry still stands.
    pub(crate) async fn publish(
        &mut self,
        value: &[u8],
        in_doubt: &mut bool,
        give_up: GiveUp<'_>,
    ) -> Result<bool, Failure> {
        let OwnEntry { store, session, key, modified, .. } = &mut self.entry;
        loop {
            let txn = publishing(key, session.lease, self.revision, *modified, value);
            let answer = commit(&store.connection, &txn, in_doubt, give_up).await?;
            if answer.succeeded() {
                *modified = revision(answer.header())?;
                return Ok(true);
            }
            match firsts(answer).next().flatten().filter(|kv| kv.create_revision == self.revision) {
                None => return Ok(false),
                // An earlier sending took effect: send once more after it, which changes nothing.
                Some(found) => *modified = found.mod_revision,
            }
        }
    }
}

/// The transaction that publishes a value, if the entry still stands. It compares the entry's last
/// known modification, so a late sending does not replace a newer value with an old one. The
/// entry's create revision stays.
fn publishing(key: &str, lease: i64, created: i64, modified: i64, value: &[u8]) -> Txn {
    Txn::new()
        .when([stands(key, created), Compare::mod_revision(key, CompareOp::Equal, modified)])
        .and_then([put(key, lease, value)])
        .or_else([TxnOp::get(key, Some(GetOptions::new().with_keys_only()))])
}

#[cfg(test)]
mod tests {
    use etcd_client::Client;

    use super::*;

    #[tokio::test]
    async fn a_late_sending_puts_no_old_value_in_the_place_of_a_newer_one() {
        let etcd = lock_lab::Etcd::builder().in_memory().start().await.unwrap();
        let mut client = Client::connect([etcd.addr().to_string()], None).await.unwrap();
        let lease = client.lease_grant(60, None).await.unwrap().id();
        let options = PutOptions::new().with_lease(lease);
        let put = client.put("a/1.0.v", "first", Some(options)).await.unwrap();
        let created = put.header().unwrap().revision();
        let publish = |value, modified| publishing("a/1.0.v", lease, created, modified, value);
        let late = publish(b"second", created);
        let sent = client.txn(late.clone()).await.unwrap();
        let newer = publish(b"third", sent.header().unwrap().revision());
        assert!(client.txn(newer).await.unwrap().succeeded());
        assert!(!client.txn(late).await.unwrap().succeeded());
        let kv = client.get("a/1.0.v", None).await.unwrap().take_kvs().remove(0);
        assert_eq!((kv.value(), kv.create_revision(), kv.lease()), (&b"third"[..], created, lease));
    }
}
