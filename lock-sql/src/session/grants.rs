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

use lock_core::{
    Clock, Instant,
    deadline::jitter,
    keep::{due::until, poison::lock},
};
use tokio::sync::Notify;

use super::{CHUNK, Session, attempt::Attempt};
use crate::{
    error,
    layout::{dialect::Dialect, row::Rows, schema::Grants},
    wire::{failure::Failure, script::Script, turns::Rank},
};

/// How long a lock is held before its grant is recorded.
const AFTER: Duration = Duration::from_millis(250);
/// Pause before a retry.
const AGAIN: Duration = Duration::from_secs(1);
const LIMIT: Duration = Duration::from_secs(2);
/// Longest pause between two looks for the column, by a client without it.
const LOOK: Duration = Duration::from_secs(10);

impl Session {
    /// Schedules the record of a grant that has just become known and is not in the attempt's row.
    pub(crate) fn date(&self, attempt: &Arc<Attempt>) {
        if *lock(&self.column) == Grants::Dated {
            self.undated.add(Clock::Boot.now() + AFTER, [attempt.clone()]);
        }
    }

    /// Same as `run` of the [database](crate::wire::database::Database), but runs the script once
    /// more if the column that it names is gone.
    ///
    /// # Errors
    ///
    /// See [`Failure`].
    pub(crate) async fn run(
        &self,
        rank: Rank,
        script: impl Fn(Script) -> String,
        limit: Duration,
    ) -> Result<(Instant, Rows), Failure> {
        let writer = self.script();
        match self.database.run(rank, &script(writer), limit).await {
            Err(failure) if self.column_is_gone(writer, &failure) => {
                self.database.run(rank, &script(self.script()), limit).await
            }
            answer => answer,
        }
    }

    /// Whether a script was refused because it names the column, which is gone. A script that is
    /// written anew succeeds.
    pub(super) fn column_is_gone(&self, writer: Script, failure: &Failure) -> bool {
        let Failure::Refused(why) = failure else { return false };
        let is_gone = writer.1 == Grants::Dated && error::is_undated(self.dialect(), why);
        // The next connection to a file adds it.
        if is_gone && self.dialect() != Dialect::Sqlite {
            *lock(&self.column) = Grants::Undated;
            self.undated.some.notify_one();
        }
        is_gone
    }

    /// Checks whether the column is there by now.
    async fn find_column(&self) {
        let probe = Script(self.dialect(), Grants::Dated).probe();
        if self.database.run(Rank::Ask, &probe, LIMIT).await.is_ok() {
            *lock(&self.column) = Grants::Dated;
        }
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
            let writer = self.script();
            if writer.1 == Grants::Undated {
                return;
            }
            match self.database.run(Rank::Ask, &writer.date(&granted), LIMIT).await {
                Err(failure) if self.column_is_gone(writer, &failure) => {}
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
    let mut look = Clock::Boot.now() + jitter(LOOK);
    loop {
        let next = |session: Arc<Session>| {
            let looks =
                *lock(&session.column) == Grants::Undated && !session.book().attempts.is_closed();
            session.undated.next_due().min(if looks { look } else { Instant::NEVER })
        };
        let Some(due) = session.upgrade().map(next) else { return };
        until(Clock::Boot, due, &some).await;
        let Some(session) = session.upgrade() else { return };
        if *lock(&session.column) == Grants::Undated && look <= Clock::Boot.now() {
            session.find_column().await;
            look = Clock::Boot.now() + jitter(LOOK);
        }
        if session.undated.next_due() <= Clock::Boot.now() {
            session.date_due().await;
        }
    }
}
