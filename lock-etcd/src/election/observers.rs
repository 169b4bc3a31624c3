//! What the observers of a name share, and the watch of each.

use std::sync::Arc;

use lock_core::{Instant, Leader};
use tokio::sync::mpsc;

use crate::{
    error::Failure,
    queue::{name::Hint, watcher::Watcher},
};

/// The last read of a name, which its observers share.
#[derive(Default)]
pub(crate) struct Last {
    pub(crate) sent: Instant,
    pub(crate) seen: Seen,
    /// Why it failed, if it did.
    pub(crate) failure: Option<Failure>,
    /// The create revision and the note of the last candidate that led.
    pub(crate) note: (i64, Vec<u8>),
    /// The token floor of the last leader.
    pub(crate) floor: u64,
}

/// The result of a read.
#[derive(Clone, Debug, Default)]
pub(crate) struct Seen {
    pub(crate) revision: i64,
    pub(crate) leader: Option<Leader>,
}

/// A watch of one observer. It ends when this is dropped.
pub(crate) struct Watching {
    id: i64,
    pub(crate) hints: mpsc::Receiver<Hint>,
    watcher: Arc<Watcher>,
}

impl Watching {
    /// Watches a queue from a revision on.
    pub(crate) fn from(watcher: &Arc<Watcher>, queue: &Arc<str>, start: i64) -> Self {
        let (id, hints) = watcher.names().observe(queue, start);
        Self { id, hints, watcher: watcher.clone() }
    }
}

impl Drop for Watching {
    fn drop(&mut self) {
        self.watcher.names().stop_observing(self.id);
    }
}
