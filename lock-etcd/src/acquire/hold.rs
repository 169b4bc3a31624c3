//! The entry of a held lock, and how it changes its kind.

use lock_core::{Result, Validity, queue::Kind};
use uuid::Uuid;

use crate::{
    acquire::convert::{self, Upgrade, Upgraded},
    election::publish::publish,
    error::Failure,
    layout::{
        keys::{self, Role},
        listing::QueueEntry,
        note,
    },
    session::{
        attempt::{Form, OwnEntry},
        leftover::{Leftover, Stake},
    },
    wire::{answer, connection::GiveUp, reads, removals, requests::commit},
};

/// The entry of a held lock.
pub(crate) struct Hold {
    pub(crate) entry: OwnEntry,
    /// The entry's create revision.
    pub(crate) revision: i64,
    /// A revision of a moment ago at which it stood, if one is known.
    stood: Option<i64>,
    /// The new entry of an unanswered upgrade. It may stand in the place of this one, or may be put
    /// there as long as this one stands.
    doubtful: Option<OwnEntry>,
}

impl Hold {
    pub(crate) fn new(entry: OwnEntry, revision: i64) -> Self {
        Self { stood: Some(entry.modified), entry, revision, doubtful: None }
    }

    /// Whether it can be left to another process: an exclusive entry without anything beside it.
    pub(crate) fn is_plain(&self) -> bool {
        let aside = self.entry.is_candidate() || self.doubtful.is_some();
        self.entry.is_exclusive() && !aside
    }

    /// Watches the entry if it lasts, unless an upgrade may have put another one in its place: its
    /// deletion is no loss then.
    pub(crate) fn watch(&self, validity: &Validity) {
        if self.doubtful.is_some() {
            return;
        }
        let OwnEntry { store, key, .. } = &self.entry;
        store.watcher.side().add_young(key, (self.revision, self.stood), validity);
    }

    /// Whether the entry stands, confirmed by the whole cluster, or the one that an unanswered
    /// upgrade has put in its place.
    pub(crate) async fn stands(&self) -> Result<bool, Failure> {
        let OwnEntry { store, session, key, .. } = &self.entry;
        let stands = reads::exists(&store.connection, key, self.revision).await?;
        match &self.doubtful {
            Some(new) if !stands => {
                let give_up = || session.ended.is_cancelled();
                new.find(&give_up).await.map(|found| found.is_some())
            }
            _ => Ok(stands),
        }
    }

    /// Stops watching the entry.
    pub(crate) fn unwatch(&self) {
        let OwnEntry { store, queue, key, .. } = &self.entry;
        store.watcher.side().leave(queue, self.revision, key);
    }

    /// Hands the lock over: the entry is about to be removed, and the attempts of this client that
    /// this admits enter now.
    pub(crate) fn hand_over(&self) {
        let OwnEntry { store, queue, key, .. } = &self.entry;
        store.watcher.side().release(queue, self.revision, key);
    }

    /// Removes the entry. After that it does nothing.
    pub(crate) async fn remove(&mut self) -> Result<()> {
        let then = self.then();
        self.entry.remove(then).await
    }

    /// Removes the entry in the background.
    pub(crate) fn abandon(&mut self) {
        let then = self.then();
        self.entry.abandon(then);
    }

    /// The doubtful new entry, to be removed next: without the old entry no late upgrade makes it.
    fn then(&mut self) -> Option<Leftover> {
        self.doubtful.take()?.leftover(None)
    }

    /// Makes the entry a shared one, in its place. Returns whether it still stands.
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
        let txn = convert::downgrade(key, session.lease, self.revision);
        let answer = commit(&store.connection, &txn, in_doubt, give_up).await?;
        let signalled = answer::revision(answer.header())?;
        if answer.succeeded() {
            let (revision, kind) = (self.revision, Kind::Shared);
            let shared = QueueEntry { revision, key: key.as_bytes().to_vec(), kind };
            store.watcher.side().downgraded(queue, &shared);
            self.signal(signalled);
            self.entry.form = Form::Shared;
        }
        Ok(answer.succeeded())
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
            let txn = publish(key, session.lease, (self.revision, *modified), value);
            let answer = commit(&store.connection, &txn, in_doubt, give_up).await?;
            if answer.succeeded() {
                *modified = answer::revision(answer.header())?;
                return Ok(true);
            }
            match answer::firsts(answer).next().flatten().filter(|kv| kv.create_revision == self.revision) {
                None => return Ok(false),
                // An earlier sending took effect: send once more after it, which changes nothing.
                Some(found) => *modified = found.mod_revision,
            }
        }
    }

    /// Signals the readers of other clients to list the queue.
    fn signal(&self, revision: i64) {
        let OwnEntry { store, session, key, .. } = &self.entry;
        let (connection, session) = (store.connection.clone(), session.clone());
        let signal = removals::remove_written(keys::signal(key).as_bytes(), revision);
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
        let doubted = self.doubtful.is_some();
        let OwnEntry { store, session, queue, .. } = &self.entry;
        let role = (Role::Ours(Kind::Exclusive), attempt);
        let exclusive = || OwnEntry::new(store, session.clone(), queue.clone(), role);
        let note = &note::write(holder, attempt, &session.floor);
        let new = self.doubtful.get_or_insert_with(exclusive);
        new.set_stake(Stake::Doubtful(None));
        let (old, revision) = (&self.entry, self.revision);
        *in_doubt = doubted;
        let upgrade = Upgrade { old, revision, new, note, attempt };
        let upgraded = upgrade.send(in_doubt, give_up).await;
        // In doubt it stays doubtful: another try, or the release, settles it.
        let settled = upgraded.is_ok() || !(*in_doubt || doubted);
        if let Some(mut new) = self.doubtful.take_if(|_| settled) {
            // A refused upgrade leaves nothing.
            new.set_stake(Stake::Nothing);
            if let Ok(Upgraded::Done(revision, header)) = upgraded {
                new.answered(Stake::Entry(revision), header);
                self.entry.set_stake(Stake::Nothing);
                (self.revision, self.stood) = (revision, Some(revision));
                self.entry = new;
            }
        }
        if let Ok(Upgraded::Busy(at)) = upgraded {
            self.stood = Some(at);
        }
        upgraded
    }
}
