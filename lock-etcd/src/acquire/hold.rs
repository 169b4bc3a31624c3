//! The entry of a held lock.

use lock_core::Validity;

use crate::{error::Failure, session::attempt::OwnEntry, wire::reads};

/// The entry of a held lock.
pub(crate) struct Hold {
    pub(crate) entry: OwnEntry,
    /// The entry's create revision.
    pub(crate) revision: i64,
    /// A revision of a moment ago at which it stood, if one is known.
    pub(super) stood: Option<i64>,
}

impl Hold {
    pub(crate) fn new(entry: OwnEntry, revision: i64) -> Self {
        Self { stood: Some(entry.modified), entry, revision }
    }

    /// Whether it can be left to another process: an exclusive entry without anything beside it.
    pub(crate) fn is_plain(&self) -> bool {
        let aside = self.entry.is_candidate() || self.entry.doubtful.is_some();
        self.entry.is_exclusive() && !aside
    }

    /// Watches the entry if it lasts, unless an upgrade may have put another one in its place: its
    /// deletion is no loss then.
    pub(crate) fn watch(&self, validity: &Validity) {
        if self.entry.doubtful.is_some() {
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
        match &self.entry.doubtful {
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
}
