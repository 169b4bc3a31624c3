//! Marks of work that is done for a period.

use std::time::Duration;

use lock_core::{Clock, LockName, Mark, keep::poison::lock, wall_clock};
use uuid::Uuid;

use super::{MemoryStore, entry::StoredMark};

impl MemoryStore {
    /// Writes the mark of a grant whose entry is still there. Returns whether it is.
    pub(crate) fn set_mark(
        &self,
        name: &LockName,
        attempt: Uuid,
        host: &str,
        left: Duration,
    ) -> bool {
        let now = Clock::Tokio.now();
        let mut state = lock(&self.0.state);
        state.settle(name, now);
        let grant = state.grant_of(name, attempt);
        let Some(token) = state.hooks.marked_with(grant.map(|grant| grant.token)) else {
            return false;
        };
        let done_at = wall_clock();
        let mark = Mark::new(host, token, done_at, done_at + left);
        state.marks.retain(|_, stored| stored.expires > now);
        state.marks.insert(name.clone(), StoredMark { mark, expires: now + left });
        true
    }

    pub(crate) fn mark(&self, name: &LockName) -> Option<Mark> {
        let now = Clock::Tokio.now();
        let state = lock(&self.0.state);
        let stored = state.marks.get(name).filter(|stored| stored.expires > now);
        stored.map(|stored| stored.mark.clone())
    }

    pub(crate) fn marks(&self, prefix: &str) -> Vec<(LockName, Mark)> {
        let now = Clock::Tokio.now();
        let state = lock(&self.0.state);
        let present = state
            .marks
            .iter()
            .filter(|(name, stored)| name.as_str().starts_with(prefix) && stored.expires > now);
        present.map(|(name, stored)| (name.clone(), stored.mark.clone())).collect()
    }

    /// Returns the names of all marks, also of those whose period is over.
    #[cfg(feature = "properties")]
    pub(crate) fn marked(&self) -> Vec<LockName> {
        lock(&self.0.state).marks.keys().cloned().collect()
    }

    /// Returns whether there was a mark.
    pub(crate) fn clear_mark(&self, name: &LockName) -> bool {
        let present = self.mark(name).is_some();
        lock(&self.0.state).marks.remove(name);
        present
    }
}
