//! What a client does when another server has taken over.

use std::sync::Arc;

use lock_core::Clock;

use super::{Session, attempt::Attempt};

impl Session {
    /// Notes that the database does not have an attempt any more.
    pub(super) fn gone(&self, attempt: &Attempt) {
        if let Some(at) = self.database.moved_at() {
            attempt.lost_if_before(at);
        }
        attempt.gone();
    }

    /// Whether another server has taken over since the client last checked all that it holds.
    pub(super) fn has_moved(&self) -> bool {
        self.database.moved_at() > self.book().checked
    }

    /// If another server has taken over: has all attempts renewed now, as that one may not know the
    /// newest ones. Looks at all queues, since pushes of the former server got lost.
    pub(super) fn check_moved(self: &Arc<Self>) {
        if !self.has_moved() {
            return;
        }
        let (moved, now) = (self.database.moved_at(), Clock::Boot.now());
        let mut book = self.book();
        book.checked = moved;
        book.attempts.all_due(now);
        drop(book);
        #[cfg(feature = "postgres")]
        if let Some(pushes) = self.database.pushes() {
            pushes.broken.notify_one();
        }
        // A renewal leaves out the newest locks, which are the likeliest to be missing.
        let session = self.clone();
        tokio::spawn(async move { session.check_held().await });
    }
}
