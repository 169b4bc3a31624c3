//! The entry of a held lock.

use lock_core::{Result, Validity};

use crate::{
    election::publish::publish,
    error::Failure,
    session::{Leftover, attempt::OwnEntry},
    wire::{
        connection::GiveUp,
        reads,
        requests::{commit, firsts, revision},
    },
};

/// The entry of a held lock.
pub(crate) struct Hold {
    pub(crate) entry: OwnEntry,
    /// The entry's create revision.
    pub(crate) revision: i64,
    /// A revision of a moment ago at which it stood, if one is known.
    pub(super) stood: Option<i64>,
    /// The new entry of an unanswered upgrade. It may stand in the place of this one, or may be put
    /// there as long as this one stands.
    pub(super) doubtful: Option<OwnEntry>,
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
        store.watcher.names().add_young(key, (self.revision, self.stood), validity);
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
        store.watcher.names().leave(queue, self.revision, key);
    }

    /// Hands the lock over: the entry is about to be removed, and the attempts of this client that
    /// this admits enter now.
    pub(crate) fn hand_over(&self) {
        let OwnEntry { store, queue, key, .. } = &self.entry;
        store.watcher.names().release(queue, self.revision, key);
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
