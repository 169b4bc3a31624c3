//! One attempt's entry in the store, from the request that makes it to the one that removes it, and
//! the entry of a held lock.

use std::sync::Arc;

use lock_core::{Attempt, Error, Kind, LossReason, Result, Validity, keep::errors::late};
use uuid::Uuid;

use crate::{
    error::{Failure, FailureKind, STORE},
    layout::keys::{self, Role, Slot, role},
    session::{Leftover, Session, Stake, User, janitor::Janitor, store::Store},
    wire::{connection::GiveUp, reads, requests::Header},
};

/// One attempt's entry, made or not yet made.
pub(crate) struct OwnEntry {
    pub(crate) store: Arc<Store>,
    pub(crate) session: Arc<Session>,
    pub(crate) queue: Arc<str>,
    pub(crate) key: Arc<str>,
    /// The attempt, which its note names.
    attempt: Uuid,
    slot: Arc<Slot>,
    /// `None` once the attempt is over.
    user: Option<User>,
    pub(crate) form: Form,
    /// Changed by [`set_stake`](Self::set_stake).
    pub(crate) stake: Stake,
    /// Whether a read has shown what an unanswered request did.
    pub(crate) looked_up: bool,
    /// The header of the answer that reported the entry.
    pub(crate) header: Header,
    /// The last known modification of the entry: a published value, its adoption, or its creation.
    pub(crate) modified: i64,
    /// The new entry of an unanswered upgrade. It may stand in the place of this one, or may be put
    /// there as long as this one stands.
    pub(crate) doubtful: Option<Box<Self>>,
}

/// Whether an entry still has the kind in its key.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub(crate) enum Form {
    /// As it was made.
    Made,
    /// A downgrade was sent, and its answer was lost.
    PerhapsShared,
    /// It was downgraded.
    Shared,
}

impl OwnEntry {
    pub(crate) fn new(
        store: &Arc<Store>,
        session: Arc<Session>,
        queue: Arc<str>,
        role: Role,
        attempt: Uuid,
    ) -> Self {
        let slot = Arc::new(store.slots.take(&queue));
        let key = keys::key(&queue, session.lease, slot.number, role).into();
        let (store, user) = (store.clone(), Some(session.user()));
        Self {
            store,
            session,
            queue,
            key,
            attempt,
            slot,
            user,
            form: Form::Made,
            stake: Stake::Nothing,
            looked_up: false,
            header: Header::default(),
            modified: 0,
            doubtful: None,
        }
    }

    fn role(&self) -> Role {
        role(self.key.as_bytes())
    }

    /// Whether it has a value for observers.
    pub(crate) fn is_candidate(&self) -> bool {
        self.role() == Role::Candidate
    }

    /// Whether it certainly shares the lock.
    pub(crate) fn is_shared(&self) -> bool {
        self.form == Form::Shared || self.role() == Role::Ours(Kind::Shared)
    }

    /// Whether it is certainly exclusive.
    pub(crate) fn is_exclusive(&self) -> bool {
        self.form == Form::Made && self.role().kind() == Some(Kind::Exclusive)
    }

    pub(crate) fn set_stake(&mut self, stake: Stake) {
        self.session.entries.note(&self.key, stake);
        self.stake = stake;
    }

    /// Notes what an answer says of the entry.
    pub(crate) fn answered(&mut self, stake: Stake, header: Header) {
        self.set_stake(stake);
        self.header = header;
        if let Stake::Entry(revision) = stake {
            self.modified = revision;
        }
    }

    pub(crate) fn janitor(&self) -> Janitor<'_> {
        Janitor { store: &self.store, session: &self.session }
    }

    /// Returns the create revision of the entry, and its last modification, if it stands.
    pub(crate) async fn find(&self, give_up: GiveUp<'_>) -> Result<Option<(i64, i64)>, Failure> {
        reads::entry_of(&self.store.connection, &self.key, self.attempt, give_up).await
    }

    /// Removes the entry. When this returns `Ok`, it is gone or goes with its session, and nothing
    /// makes it again.
    pub(crate) async fn remove(&mut self) -> Result<()> {
        match self.leftover() {
            Some(leftover) => self.janitor().remove(leftover).await,
            None => Ok(()),
        }
    }

    /// Removes the entry in the background.
    pub(crate) fn abandon(&mut self) {
        if let Some(leftover) = self.leftover() {
            self.janitor().leave(leftover);
        }
    }

    /// Gives the entry to another process. No other attempt enters with its key as long as it stands.
    pub(crate) fn give_away(&mut self) {
        drop(self.user.take());
        self.set_stake(Stake::Nothing);
    }

    /// Ends the attempt and returns what there is to remove. The caller must remove it.
    fn leftover(&mut self) -> Option<Leftover> {
        // To be removed next: without this entry no late upgrade makes it.
        let then = self.doubtful.take().and_then(|mut new| new.leftover()).map(Box::new);
        drop(self.user.take());
        let stake = std::mem::replace(&mut self.stake, Stake::Nothing);
        let (key, _slot) = (self.key.clone(), self.slot.clone());
        let belongs = self.form != Form::Made || self.is_candidate();
        let attempt = self.attempt;
        let leftover = Leftover { key, attempt, _slot, stake, belongs, then };
        (stake != Stake::Nothing).then_some(leftover)
    }

    /// The error of a waiter whose session has ended.
    pub(crate) fn session_ended(&self) -> Error {
        let loss = self.session.loss();
        match self.store.sessions.check_open() {
            Err(closed) => closed,
            // A session that expired is gone, too, once it is revoked.
            Ok(()) if self.session.is_gone() && loss == Some(LossReason::SessionEnded) => {
                vanished()
            }
            Ok(()) if loss == Some(LossReason::Restored) => {
                Error::PlaceLost { store: STORE, name: None, reason: LossReason::Restored }
            }
            Ok(()) if self.session.stood_still() => late(STORE),
            Ok(()) => {
                let silent = "the session in which the attempt waited could not be renewed in time";
                Failure::new(FailureKind::SessionEnded, silent).into_error("acquire", false)
            }
        }
    }
}

/// The entry of a held lock.
pub(crate) struct Hold {
    pub(crate) entry: OwnEntry,
    /// The entry's create revision.
    pub(crate) revision: i64,
    /// A revision of a moment ago at which it stood, if one is known.
    pub(crate) stood: Option<i64>,
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
        store.watcher.names().add_young(key, self.revision, self.stood, validity);
    }

    /// Whether the entry stands, confirmed by the whole cluster, or the one that an unanswered
    /// upgrade has put in its place.
    pub(crate) async fn stands(&self) -> Result<bool, Failure> {
        let OwnEntry { store, session, key, .. } = &self.entry;
        let stands = reads::exists(&store.connection, key.as_bytes(), self.revision).await?;
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

/// The error of a waiter whose entry is gone although its session lived, or with its lease.
pub(crate) fn vanished() -> Error {
    Error::place_lost(STORE)
}

/// Removes the entry that an attempt left: at once if its caller has left, else in the background.
pub(crate) async fn give_up(mut entry: OwnEntry, attempt: &Attempt, error: Error) -> Error {
    if attempt.is_cancelled() {
        // Otherwise the janitor or the session's end removes it.
        drop(entry.remove().await);
    } else {
        entry.abandon();
    }
    error
}
