//! The entries of a session in the store, for the case that etcd does not end its lease.
//!
//! The end of a lease takes all its keys with it. etcd refuses it if the login may not write one of
//! them any more. The others are then removed key by key, so that no waiter waits a TTL for them.

use std::{
    collections::HashMap,
    sync::{Arc, Mutex},
};

use lock_core::keep::poison::lock;

use crate::session::leftover::Stake;

/// The entries of one session by their keys, with their create revisions as far as they are known.
#[derive(Debug, Default)]
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
