//! The attempts that are due for renewal at one node.

use std::{collections::HashMap, sync::Arc, sync::Mutex};

use lock_core::keep::poison::lock;
use uuid::Uuid;

use super::attempt::Attempt;

/// The attempts that are due at a node. One task at a time renews them, so a node that does not
/// answer holds up its own attempts and no others.
#[derive(Debug, Default)]
pub(super) struct Due(Mutex<State>);

#[derive(Debug, Default)]
struct State {
    attempts: HashMap<Uuid, Arc<Attempt>>,
    is_renewing: bool,
}

impl Due {
    /// Adds an attempt. Returns whether the caller must start a task that [takes](Self::take).
    #[must_use]
    pub(super) fn add(&self, attempt: Arc<Attempt>) -> bool {
        let mut state = lock(&self.0);
        state.attempts.insert(attempt.id, attempt);
        !std::mem::replace(&mut state.is_renewing, true)
    }

    /// Takes all attempts. After `None` the task has ended, and the next one is another.
    pub(super) fn take(&self) -> Option<Vec<Arc<Attempt>>> {
        let mut state = lock(&self.0);
        state.is_renewing = !state.attempts.is_empty();
        state.is_renewing.then(|| state.attempts.drain().map(|(_, attempt)| attempt).collect())
    }
}
