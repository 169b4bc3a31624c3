//! What an attempt learns from a renewal that sees one key of its name only.

use lock_core::{Clock, Instant};

use super::{Attempt, LONGEST_ASK, Stage};

impl Attempt {
    /// Takes note that the attempt still waits. Whether its turn has come is not known, so it asks
    /// again soon. Returns when, if that is before the next renewal.
    pub(crate) fn kept_waiting(&self, asked: Instant) -> Option<Instant> {
        self.change(|stage| match stage {
            Stage::Waiting { sent, note } if asked >= *sent => {
                *sent = asked;
                let soon = LONGEST_ASK < self.period;
                note.ask = soon.then(|| Clock::Boot.now() + LONGEST_ASK);
                note.ask
            }
            _ => None,
        })
    }
}
