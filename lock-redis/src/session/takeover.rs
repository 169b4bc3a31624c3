//! Another server takes over: which attempts are doubted, checked, or kept. What an attempt makes of
//! it is in [`attempt::failover`](super::attempt).
//!
//! The newest writes may be missing there. So from the first sign on, a hold counts only for as
//! long as a renewal before the last one grants, and each attempt is checked on the new primary at
//! once. Holds whose writes replicas have confirmed keep their deadlines.

use std::sync::Arc;

use lock_core::Clock;

use super::{Session, attempt::Attempt, node::Node};

impl Session {
    /// Takes note of a sign that another server takes over as this node, or may do so soon. A young
    /// hold counts on if it is confirmed once more, so all are renewed.
    pub(super) fn doubt(&self, node: &Arc<Node>) {
        if self.config.wait_replicas > 0 {
            return;
        }
        let now = Clock::Boot.now();
        self.each_at(node, |attempt| attempt.doubt(now));
        self.book().attempts.all_due(now);
        self.alarm.notify_one();
    }

    /// Looks for all attempts of a node that was connected again: it may have lost them, or others
    /// may have ended them meanwhile. The caller makes all attempts due.
    pub(super) fn check_all(&self, node: &Arc<Node>) {
        let now = Clock::Boot.now();
        self.each_at(node, |attempt| attempt.check(now));
    }

    /// Takes note that the server is not suspected any more, or has taken over already.
    pub(super) fn settle(&self, node: &Arc<Node>) {
        self.each_at(node, Attempt::settle);
    }

    /// Takes note that another server has taken over as this node. The caller makes all attempts
    /// due.
    pub(super) fn taken_over(&self, node: &Arc<Node>) {
        let now = Clock::Boot.now();
        self.each_at(node, |attempt| {
            if self.config.wait_replicas == 0 {
                attempt.doubt(now);
            }
            attempt.taken_over(now);
        });
    }

    fn each_at(&self, node: &Arc<Node>, what: impl Fn(&Attempt)) {
        let book = self.book();
        book.attempts.all().filter(|it| self.is_at(it, node)).for_each(|attempt| what(attempt));
    }

    /// Whether an attempt of a node waits or holds.
    pub(super) fn has_any_at(&self, node: &Arc<Node>) -> bool {
        self.book().attempts.all().any(|attempt| self.is_at(attempt, node))
    }

    fn is_at(&self, attempt: &Attempt, node: &Arc<Node>) -> bool {
        Arc::ptr_eq(&self.routes.of(attempt.key.lock()), node)
    }
}
