//! Records for operators when a wait ended.
//!
//! An attempt that gets its lock at once records it in its first request. One that has waited
//! learns of the grant by a look, which writes nothing. So its client writes it a moment later, and
//! never for a lock that is held for less. No hand-over waits for it, and short holds cost nothing
//! more.

use std::{
    sync::{Arc, Weak},
    time::Duration,
};

use lock_core::{Clock, keep::due::until};
use tokio::sync::Notify;

use super::{CHUNK, Session, attempt::Attempt};
use crate::wire::{failure::Failure, turns::Rank};

/// How long a lock is held before its grant is recorded.
const AFTER: Duration = Duration::from_millis(250);
/// Pause before a retry.
const AGAIN: Duration = Duration::from_secs(1);
const LIMIT: Duration = Duration::from_secs(2);

impl Session {
    /// Schedules the record of a grant that has just become known and is not in the attempt's row.
    pub(crate) fn date(&self, attempt: &Arc<Attempt>) {
        self.undated.add(Clock::Boot.now() + AFTER, [attempt.clone()]);
    }

    /// Takes out the attempts that are due and still hold their locks.
    fn undated_now(&self) -> Vec<Arc<Attempt>> {
        let mut due = self.undated.take_due(Clock::Boot.now());
        let book = self.book();
        due.retain(|attempt| book.attempts.find(attempt.id).is_some() && attempt.is_held());
        due
    }

    async fn date_due(&self) {
        for attempts in self.undated_now().chunks(CHUNK) {
            let granted =
                attempts.iter().filter_map(|attempt| Some((attempt.id, attempt.granted()?)));
            let granted: Vec<_> = granted.collect();
            match self.database.run(Rank::Ask, &self.script().date(&granted), LIMIT).await {
                Err(Failure::Down(_) | Failure::Lost(_)) => {
                    self.undated.add(Clock::Boot.now() + AGAIN, attempts.iter().cloned());
                }
                _ => {}
            }
        }
    }
}

/// Records grants until the session is gone.
pub(crate) async fn run(session: Weak<Session>, some: Arc<Notify>) {
    loop {
        let next = |session: Arc<Session>| session.undated.next_due();
        let Some(due) = session.upgrade().map(next) else { return };
        until(Clock::Boot, due, &some).await;
        let Some(session) = session.upgrade() else { return };
        if session.undated.next_due() <= Clock::Boot.now() {
            session.date_due().await;
        }
    }
}
