//! Grants that are to be recorded.

use std::{
    collections::VecDeque,
    sync::{Arc, Mutex},
};

use lock_core::{Instant, keep::poison::lock};
use tokio::sync::Notify;

use crate::session::attempt::Attempt;

/// The attempts to record, mostly in the order of their due times: a retry may keep others waiting.
#[derive(Debug, Default)]
pub(crate) struct Undated {
    waiting: Mutex<VecDeque<(Instant, Arc<Attempt>)>>,
    /// Rings when there is something to record, or the session ends.
    pub(crate) some: Arc<Notify>,
}

impl Undated {
    pub(super) fn add(&self, due: Instant, attempts: impl IntoIterator<Item = Arc<Attempt>>) {
        let mut waiting = lock(&self.waiting);
        let was_empty = waiting.is_empty();
        waiting.extend(attempts.into_iter().map(|attempt| (due, attempt)));
        if was_empty {
            self.some.notify_one();
        }
    }

    pub(super) fn next_due(&self) -> Instant {
        lock(&self.waiting).front().map_or(Instant::NEVER, |(due, _)| *due)
    }

    pub(super) fn take_due(&self, now: Instant) -> Vec<Arc<Attempt>> {
        let mut waiting = lock(&self.waiting);
        let due = waiting.iter().take_while(|(due, _)| *due <= now).count();
        waiting.drain(..due).map(|(_, attempt)| attempt).collect()
    }
}
