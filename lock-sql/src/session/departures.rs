//! Entries that attempts leave behind, until they are removed.

use std::sync::Arc;

use tokio::sync::OwnedRwLockReadGuard;

use crate::session::attempt::Attempt;

/// Attempts that leave at the same time.
#[derive(Debug)]
pub(crate) struct Leaving {
    pub(super) attempts: Vec<Arc<Attempt>>,
    /// A request of theirs may still be under way.
    pub(super) doubtful: bool,
    /// `close` waits for this.
    pub(super) _busy: Option<OwnedRwLockReadGuard<()>>,
}
