//! Things that are due later, and the one task that handles all of them.

use std::{
    collections::BTreeMap,
    sync::{Mutex, MutexGuard},
};

use tokio::sync::Notify;

use crate::{Instant, keep::poison::lock};

/// Things that are due later.
///
/// One task with one timer for all things of a client, and no task while there is nothing to do.
pub(crate) struct Later<T> {
    due: Mutex<Due<T>>,
    pub(crate) earlier: Notify,
}

pub(crate) struct Due<T> {
    next_id: u64,
    things: BTreeMap<(Instant, u64), T>,
    /// Whether the task runs.
    running: bool,
}

impl<T> Later<T> {
    pub(crate) fn due(&self) -> MutexGuard<'_, Due<T>> {
        lock(&self.due)
    }

    /// Removes and returns everything.
    pub(crate) fn drain(&self) -> impl Iterator<Item = T> + use<T> {
        let things = std::mem::take(&mut self.due().things);
        self.earlier.notify_one();
        things.into_values()
    }
}

impl<T> Default for Later<T> {
    fn default() -> Self {
        Self { due: Mutex::default(), earlier: Notify::new() }
    }
}

impl<T> Due<T> {
    /// Adds a thing that is due at `at`. Returns whether the task runs; the caller starts it
    /// otherwise.
    pub(crate) fn add(&mut self, at: Instant, thing: T) -> bool {
        let key = (at, self.next_id);
        self.next_id += 1;
        self.things.insert(key, thing);
        std::mem::replace(&mut self.running, true)
    }

    /// When the next thing is due. `None` ends the task; it comes if nothing is due or under way.
    pub(crate) fn next(&mut self, under_way: usize) -> Option<Instant> {
        let next = self.things.first_key_value().map(|(key, _)| key.0);
        self.running = under_way > 0 || next.is_some();
        self.running.then(|| next.unwrap_or(Instant::NEVER))
    }

    /// Removes and returns the things that are due now.
    pub(crate) fn take(&mut self, now: Instant) -> impl Iterator<Item = T> + use<T> {
        let later = self.things.split_off(&(now, u64::MAX));
        std::mem::replace(&mut self.things, later).into_values()
    }
}

impl<T> Default for Due<T> {
    fn default() -> Self {
        Self { next_id: 0, things: BTreeMap::new(), running: false }
    }
}
