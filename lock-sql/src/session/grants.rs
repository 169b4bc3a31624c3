//! When a wait has ended, written down for operators.
//!
//! An attempt that gets its lock at once says so in its first request. One that has waited finds out
//! by a look, which writes nothing. So its client writes it a moment later, and never for a lock that
//! is held for less: no hand-over waits for it, and short holds cost nothing more.

use std::{
    sync::{Arc, Weak},
    time::Duration,
};

use tokio::sync::Notify;

use super::{CHUNK, Session, attempt::Attempt};
use crate::{
    layout::schema::Grants,
    wire::{
        clock::{CLOCK, until},
        failure::Failure,
        turns::Rank,
    },
};

/// How long a lock is held before it is written down when it was granted.
const AFTER: Duration = Duration::from_millis(250);
/// When it is tried again.
const AGAIN: Duration = Duration::from_secs(1);
const LIMIT: Duration = Duration::from_secs(2);

impl Session {
    /// The attempt was granted just now, or at least known to be, and its row does not say so.
    pub(crate) fn date(&self, attempt: &Arc<Attempt>) {
        if self.grants == Grants::Dated {
            self.undated.add(CLOCK.now() + AFTER, [attempt.clone()]);
        }
    }

    /// Takes out what is due and still held.
    fn undated_now(&self) -> Vec<Arc<Attempt>> {
        let mut due = self.undated.take_due(CLOCK.now());
        let book = self.book();
        due.retain(|attempt| book.attempts.contains_key(&attempt.id) && attempt.is_held());
        due
    }

    async fn date_due(&self) {
        for attempts in self.undated_now().chunks(CHUNK) {
            let granted =
                attempts.iter().filter_map(|attempt| Some((attempt.id, attempt.granted()?)));
            let granted: Vec<_> = granted.collect();
            let script = self.script().date(&granted);
            let done = self.database.run(Rank::Ask, &script, LIMIT).await;
            if matches!(done, Err(Failure::Down(_) | Failure::Lost(_))) {
                self.undated.add(CLOCK.now() + AGAIN, attempts.iter().cloned());
            }
        }
    }
}

/// Writes until the session is gone.
pub(crate) async fn run(session: Weak<Session>, some: Arc<Notify>) {
    loop {
        let Some(due) = session.upgrade().map(|session| session.undated.next_due()) else { return };
        until(due, &some).await;
        let Some(session) = session.upgrade() else { return };
        if session.undated.next_due() <= CLOCK.now() {
            session.date_due().await;
        }
    }
}
