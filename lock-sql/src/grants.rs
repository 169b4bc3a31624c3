//! When a wait has ended, written down for operators.
//!
//! An attempt that gets its lock at once says so in its first request. One that has waited finds out
//! by a look, which writes nothing. So its client writes it a moment later, and never for a lock that
//! is held for less: no hand-over waits for it, and short holds cost nothing more.

use std::{
    collections::VecDeque,
    sync::{
        Arc, Mutex, MutexGuard, PoisonError, Weak,
        atomic::{AtomicBool, Ordering::Relaxed},
    },
    time::Duration,
};

use lock_core::{Instant, deadline::jitter};
use tokio::sync::Notify;

use crate::{
    connections::Failure,
    dialect::Dialect,
    entry::Entry,
    error,
    round::until,
    row::Row,
    schema,
    script::Script,
    session::{CHUNK, CLOCK, Session},
    turns::Rank,
};

/// How long a lock is held before it is written down when it was granted.
const AFTER: Duration = Duration::from_millis(250);
/// When it is tried again.
const AGAIN: Duration = Duration::from_secs(1);
const LIMIT: Duration = Duration::from_secs(2);
/// How often a client without the column looks whether somebody has added it.
const LOOK: Duration = Duration::from_secs(10);

/// Whether the tables have a column for it.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub(crate) enum Grants {
    Dated,
    /// An earlier version has made them, and nobody has altered them yet.
    Undated,
}

/// What a client knows of the column. It may go, as when an old dump is restored, and come.
#[derive(Debug)]
pub(crate) struct Column(AtomicBool);

impl Column {
    pub(crate) fn new(grants: Grants) -> Self {
        Self(AtomicBool::new(grants == Grants::Dated))
    }

    pub(crate) fn grants(&self) -> Grants {
        if self.0.load(Relaxed) { Grants::Dated } else { Grants::Undated }
    }

    fn set(&self, grants: Grants) {
        self.0.store(grants == Grants::Dated, Relaxed);
    }
}

/// What is to be written down, mostly in order: what is tried again may keep others waiting.
#[derive(Debug, Default)]
pub(crate) struct Undated {
    waiting: Mutex<VecDeque<(Instant, Arc<Entry>)>>,
    /// Rings when there is something, or the session ends.
    pub(crate) some: Arc<Notify>,
}

impl Undated {
    fn waiting(&self) -> MutexGuard<'_, VecDeque<(Instant, Arc<Entry>)>> {
        // Nothing panics while it is held.
        self.waiting.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn add(&self, due: Instant, entries: impl IntoIterator<Item = Arc<Entry>>) {
        let mut waiting = self.waiting();
        let was_empty = waiting.is_empty();
        waiting.extend(entries.into_iter().map(|entry| (due, entry)));
        if was_empty {
            self.some.notify_one();
        }
    }

    fn next_due(&self) -> Instant {
        self.waiting().front().map_or(Instant::NEVER, |(due, _)| *due)
    }

    fn take_due(&self, now: Instant) -> Vec<Arc<Entry>> {
        let mut waiting = self.waiting();
        let due = waiting.iter().take_while(|(due, _)| *due <= now).count();
        waiting.drain(..due).map(|(_, entry)| entry).collect()
    }
}

impl Session {
    /// The entry was granted just now, or at least known to be, and its row does not say so.
    pub(crate) fn date(&self, entry: &Arc<Entry>) {
        if self.column.grants() == Grants::Dated {
            self.undated.add(CLOCK.now() + AFTER, [entry.clone()]);
        }
    }

    /// Runs a script when it is its turn, as [`Database::run`](crate::database::Database::run); once more
    /// if the column that it names has gone.
    ///
    /// # Errors
    ///
    /// See [`Failure`].
    pub(crate) async fn run(
        &self,
        rank: Rank,
        script: impl Fn(Script) -> String,
        limit: Duration,
    ) -> Result<(Instant, Vec<Row>), Failure> {
        let writer = self.script();
        match self.database.run(rank, &script(writer), limit).await {
            Err(failure) if self.column_is_gone(writer, &failure) => {
                self.database.run(rank, &script(self.script()), limit).await
            }
            answer => answer,
        }
    }

    /// Whether a script was refused because it names the column, which has gone: one that is written anew
    /// is answered.
    pub(crate) fn column_is_gone(&self, writer: Script, failure: &Failure) -> bool {
        let Failure::Refused(why) = failure else { return false };
        let is_gone = writer.1 == Grants::Dated && error::is_undated(self.dialect(), why);
        // The next connection to a file adds it.
        if is_gone && self.dialect() != Dialect::Sqlite {
            self.column.set(Grants::Undated);
            self.undated.some.notify_one();
        }
        is_gone
    }

    /// Looks whether the column is there by now.
    async fn find_column(&self) {
        let probe = schema::probe(self.dialect(), Grants::Dated);
        if self.database.run(Rank::Ask, &probe, LIMIT).await.is_ok() {
            self.column.set(Grants::Dated);
        }
    }

    /// Takes out what is due and still held.
    fn undated_now(&self) -> Vec<Arc<Entry>> {
        let mut due = self.undated.take_due(CLOCK.now());
        let book = self.book();
        due.retain(|entry| book.entries.contains_key(&entry.attempt) && entry.is_held());
        due
    }

    async fn date_due(&self) {
        for entries in self.undated_now().chunks(CHUNK) {
            let granted =
                entries.iter().filter_map(|entry| Some((entry.attempt, entry.granted()?)));
            let granted: Vec<_> = granted.collect();
            let writer = self.script();
            if writer.1 == Grants::Undated {
                return;
            }
            match self.database.run(Rank::Ask, &writer.date(&granted), LIMIT).await {
                Err(failure) if self.column_is_gone(writer, &failure) => {}
                Err(Failure::Down(_) | Failure::Lost(_)) => {
                    self.undated.add(CLOCK.now() + AGAIN, entries.iter().cloned());
                }
                _ => {}
            }
        }
    }
}

/// Writes until the session is gone.
pub(crate) async fn run(session: Weak<Session>, some: Arc<Notify>) {
    let mut look = CLOCK.now() + jitter(LOOK);
    loop {
        let next = |session: Arc<Session>| {
            let looks = session.column.grants() == Grants::Undated && !session.book().is_closed();
            session.undated.next_due().min(if looks { look } else { Instant::NEVER })
        };
        let Some(due) = session.upgrade().map(next) else { return };
        until(due, &some).await;
        let Some(session) = session.upgrade() else { return };
        if session.column.grants() == Grants::Undated && look <= CLOCK.now() {
            session.find_column().await;
            look = CLOCK.now() + jitter(LOOK);
        }
        if session.undated.next_due() <= CLOCK.now() {
            session.date_due().await;
        }
    }
}
