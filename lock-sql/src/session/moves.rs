//! What a client does when another server has taken over.

use std::sync::{Arc, Weak};

use lock_core::Clock;
use tokio::sync::Notify;

use super::{Session, attempt::Attempt};

/// Has the session check all that it holds whenever another server has taken over, until it ends.
pub(super) async fn run(session: Weak<Session>, moved: Arc<Notify>) {
    loop {
        moved.notified().await;
        match session.upgrade().filter(|session| !session.book().attempts.is_closed()) {
            Some(session) => session.check_all().await,
            None => return,
        }
    }
}

impl Session {
    /// Notes that the database does not have an attempt any more.
    pub(super) fn gone(&self, attempt: &Attempt) {
        if let Some(at) = self.database.moved_at() {
            attempt.lost_if_before(at);
        }
        attempt.gone();
    }

    /// Renews all attempts at once: the server that took over may not know the newest ones. Looks
    /// at all queues, since pushes of the former server got lost.
    async fn check_all(&self) {
        self.book().attempts.all_due(Clock::Boot.now());
        self.renewal_bell.notify_one();
        #[cfg(feature = "postgres")]
        if let Some(pushes) = self.database.pushes() {
            pushes.broken.notify_one();
        }
        // A renewal leaves out the newest locks, which are the likeliest to be missing.
        self.check_held().await;
    }

    /// Lets [`run`] see that the session ends.
    pub(super) fn wake_moves(&self) {
        if let Some(moved) = self.database.moved() {
            moved.notify_one();
        }
    }
}
