//! What becomes of the attempts when another server takes over.
//!
//! The newest writes may be missing there. So from the first sign on, a hold counts only for as
//! long as a renewal before the last one grants, and each attempt is checked on the new primary at
//! once. Holds whose writes replicas have confirmed keep their deadlines.

use lock_core::{Clock, Instant};

use super::Session;

impl Session {
    /// Takes note of a sign that another server takes over, or may do so soon.
    pub(super) fn doubt(&self, now: Instant) {
        if self.wait_replicas == 0 {
            self.book().attempts.all().for_each(|attempt| attempt.doubt(now));
        }
    }

    /// Takes note that another server has taken over. The caller makes all attempts due.
    pub(super) fn taken_over(&self) {
        self.doubt(Clock::Boot.now());
        self.book().attempts.all().for_each(|attempt| attempt.taken_over());
    }
}
