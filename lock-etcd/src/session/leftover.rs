//! The possible entries of attempts in the store, and the ones still to be removed.

use std::{
    collections::HashMap,
    sync::{Arc, Mutex},
};

use lock_core::keep::poison::lock;
use uuid::Uuid;

use crate::layout::key_slots::Slot;

/// The possible entry of an attempt in the store.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub(crate) enum Stake {
    Nothing,
    /// Perhaps an entry: a request to make it was not answered. If it was sent in an epoch, it may
    /// still make the entry as long as that epoch lasts.
    Doubtful(Option<i64>),
    /// The entry with this create revision.
    Entry(i64),
}

impl Stake {
    /// Returns the epoch that must end so that nothing can make the entry any more.
    pub(crate) fn late(self) -> Option<i64> {
        match self {
            Self::Doubtful(epoch) => epoch,
            Self::Nothing | Self::Entry(_) => None,
        }
    }
}

/// An entry that an attempt may have left in the store.
#[derive(Clone)]
pub(crate) struct Leftover {
    pub(crate) key: Arc<str>,
    /// The attempt, which the entry's note names.
    pub(crate) attempt: Uuid,
    /// Reserves the key until the leftover is gone.
    pub(crate) _slot: Arc<Slot>,
    pub(crate) stake: Stake,
    /// Whether keys that belong to the entry may stand beside it.
    pub(crate) belongs: bool,
    /// To be removed after this one: as long as this one stands, an unanswered upgrade may make it.
    pub(crate) then: Option<Box<Self>>,
}

/// The entries of one session by their keys, with their create revisions as far as they are known.
///
/// The end of a lease takes all its keys with it. etcd refuses it if the login may not write one of
/// them any more. The others are then removed key by key, so that no waiter waits a TTL for them.
#[derive(Default)]
pub(crate) struct Entries(Mutex<HashMap<Arc<str>, Option<i64>>>);

impl Entries {
    /// Notes the possible entry of an attempt under its key.
    pub(crate) fn note(&self, key: &Arc<str>, stake: Stake) {
        match stake {
            Stake::Nothing => lock(&self.0).remove(key),
            Stake::Doubtful(_) => lock(&self.0).insert(key.clone(), None),
            Stake::Entry(revision) => lock(&self.0).insert(key.clone(), Some(revision)),
        };
    }

    pub(super) fn all(&self) -> Vec<(Arc<str>, Option<i64>)> {
        lock(&self.0).iter().map(|(key, revision)| (key.clone(), *revision)).collect()
    }
}
