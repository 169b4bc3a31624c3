//! What becomes of the attempts when another server takes over.
//!
//! The newest writes may be missing there. So from the first sign on, a hold counts only for as
//! long as a renewal before the last one grants, and each attempt is checked on the new primary at
//! once. Holds whose writes replicas have confirmed keep their deadlines.

use std::sync::Arc;

use lock_core::{Clock, Instant};

use super::{Session, attempt::Attempt, node::Node};

impl Session {
    /// Takes note of a sign that another server takes over, or may do so soon.
    pub(super) fn doubt(&self, now: Instant) {
        if self.wait_replicas == 0 {
            self.book().attempts.all().for_each(|attempt| attempt.doubt(now));
        }
    }

    /// Takes note that the server is not suspected any more, or has taken over already.
    pub(super) fn settle(&self) {
        self.book().attempts.all().for_each(|attempt| attempt.settle());
    }

    /// Takes note that another server has taken over as this node. The caller makes all attempts
    /// due.
    pub(super) fn taken_over(&self, node: &Arc<Node>) {
        let now = Clock::Boot.now();
        let book = self.book();
        let there = |attempt: &&Arc<Attempt>| Arc::ptr_eq(&self.routes.of(&attempt.key), node);
        for attempt in book.attempts.all().filter(there) {
            if self.wait_replicas == 0 {
                attempt.doubt(now);
            }
            attempt.taken_over();
        }
    }
}
