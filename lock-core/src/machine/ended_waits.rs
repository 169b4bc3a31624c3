//! Waits that timed out, and that share the next look at the store.

use std::{
    collections::HashMap,
    sync::{Mutex, MutexGuard},
};

use tokio::sync::oneshot;
use uuid::Uuid;

use crate::{Holder, LockName, keep::poison::lock};

/// The looks under way, by name, with the waits that share the next one.
///
/// A look that is under way when a wait ends does not cover that attempt. So the wait shares the
/// next look with all others that end meanwhile. However many waits end at once, at most one look
/// per name is under way, and two are sent.
#[derive(Default)]
pub(crate) struct EndedWaits(Mutex<HashMap<LockName, Vec<Ended>>>);

pub(crate) struct Ended {
    pub(crate) attempt: Uuid,
    pub(crate) tell: oneshot::Sender<Found>,
}

/// The holder and the place that a look found for one wait.
#[derive(Default)]
pub(crate) struct Found {
    pub(crate) holder: Option<Holder>,
    /// 0 if the attempt holds the lock; 1 if it is next.
    pub(crate) place: Option<usize>,
}

impl EndedWaits {
    pub(crate) fn by_name(&self) -> MutexGuard<'_, HashMap<LockName, Vec<Ended>>> {
        lock(&self.0)
    }

    /// The waits for the next look; `None` if there are none, and then no look is under way.
    pub(crate) fn next(&self, name: &LockName) -> Option<Vec<Ended>> {
        let mut by_name = self.by_name();
        let mut waits = std::mem::take(by_name.get_mut(name)?);
        waits.retain(|wait| !wait.tell.is_closed());
        if waits.is_empty() {
            by_name.remove(name);
            return None;
        }
        Some(waits)
    }
}
