//! The orders in which the work of a client takes its locks.

use std::{collections::HashSet, sync::Mutex};

use crate::{LockName, keep::poison::lock};

/// The most pairs that are remembered: work may take a new name each time.
const MOST: usize = 4096;

/// Each pair of a lock that was held and one that was waited for meanwhile.
#[derive(Default)]
pub(crate) struct Orders(Mutex<HashSet<(LockName, LockName)>>);

impl Orders {
    /// Notes a pair. Returns whether it is the first of its kind, and the other order was there.
    pub(crate) fn cross(&self, held: &LockName, wanted: &LockName) -> bool {
        let mut seen = lock(&self.0);
        let is_new = seen.len() < MOST && seen.insert((held.clone(), wanted.clone()));
        is_new && seen.contains(&(wanted.clone(), held.clone()))
    }
}
