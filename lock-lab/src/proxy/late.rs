//! A request that travels for a long time.

use std::sync::{Mutex, MutexGuard, PoisonError};

use tokio::sync::watch;

/// Catches chunks from clients, each one once, until their delivery.
#[derive(Debug)]
pub(super) struct Late {
    wanted: Mutex<Option<Wanted>>,
    caught: watch::Sender<u64>,
    /// Number of the caught chunks that may arrive.
    delivered: watch::Sender<u64>,
}

/// The chunk to catch.
#[derive(Debug)]
struct Wanted {
    part: Vec<u8>,
    /// Whether its connection takes no more after it.
    is_last: bool,
}

impl Late {
    pub(super) fn new() -> Self {
        let (caught, delivered) = (watch::Sender::new(0), watch::Sender::new(0));
        Self { wanted: Mutex::new(None), caught, delivered }
    }

    fn wanted(&self) -> MutexGuard<'_, Option<Wanted>> {
        // Each change is one assignment, so a panic elsewhere leaves it whole.
        self.wanted.lock().unwrap_or_else(PoisonError::into_inner)
    }

    pub(super) fn want(&self, part: &[u8], is_last: bool) {
        assert!(!part.is_empty(), "every chunk has an empty part");
        *self.wanted() = Some(Wanted { part: part.to_vec(), is_last });
    }

    pub(super) fn want_nothing(&self) {
        *self.wanted() = None;
    }

    /// Returns the number of the chunk, if it is caught, and whether it is the last one.
    pub(super) fn catch(&self, chunk: &[u8]) -> Option<(u64, bool)> {
        let has = |wanted: &mut Wanted| {
            chunk.windows(wanted.part.len()).any(|found| found == wanted.part)
        };
        let Wanted { is_last, .. } = self.wanted().take_if(has)?;
        self.caught.send_modify(|caught| *caught += 1);
        Some((self.caught(), is_last))
    }

    pub(super) fn caught(&self) -> u64 {
        *self.caught.borrow()
    }

    pub(super) fn deliver(&self) {
        self.delivered.send_replace(self.caught());
    }

    /// Waits until the chunk with this number may arrive.
    pub(super) async fn arrival(&self, number: u64) {
        let mut delivered = self.delivered.subscribe();
        let known = delivered.wait_for(|delivered| *delivered >= number).await;
        known.expect("the sender lives in `self`");
    }
}
