//! One client: its connections, and what it holds and waits for.

use std::{
    sync::{Arc, Mutex, MutexGuard, PoisonError},
    time::Duration,
};

use lock_core::{Attempt, Clock, Effect, Error, Instant, LockName, Result, deadline::jitter};
use tokio::{
    sync::{Notify, OwnedRwLockReadGuard, RwLock},
    time::{sleep, timeout},
};
use uuid::Uuid;

use crate::{
    config::SqlConfig,
    connections::Failure,
    database::Database,
    dialect::Dialect,
    entry::Entry,
    error::{self, is_final, told},
    grants::{self, Column, Undated},
    janitor::Janitor,
    looks,
    observe::Observers,
    round::{self, Book},
    row::Row,
    script::Script,
    turns::Rank,
};

/// The clock of all deadlines.
pub(crate) const CLOCK: Clock = Clock::Boot;
/// Pauses between attempts grow up to the longest.
const FIRST_PAUSE: Duration = Duration::from_millis(5);
const LONGEST_PAUSE: Duration = Duration::from_millis(250);
/// How long `close` insists.
const CLOSE_LIMIT: Duration = Duration::from_secs(4);
/// How many entries one statement names.
pub(crate) const CHUNK: usize = 500;

/// What a client is to the database.
pub(crate) struct Session {
    pub(crate) id: Uuid,
    pub(crate) database: Database,
    book: Mutex<Book>,
    /// Read by whatever may leave an entry in the database, or removes one; written when all of
    /// that is over.
    busy: Arc<RwLock<()>>,
    pub(crate) observers: Observers,
    pub(crate) janitor: Janitor,
    /// Rings when a renewal is due earlier than before, or the session ends.
    pub(crate) round_due: Arc<Notify>,
    /// The same for looks.
    pub(crate) look_due: Arc<Notify>,
    pub(crate) column: Column,
    pub(crate) undated: Undated,
}

impl Session {
    /// Connects, once.
    ///
    /// # Errors
    ///
    /// Why it was not possible.
    pub(crate) async fn start(config: &SqlConfig) -> Result<Arc<Self>> {
        let (database, grants) = Database::open(config).await?;
        let session = Arc::new(Self {
            id: Uuid::new_v4(),
            database,
            book: Mutex::default(),
            busy: Arc::default(),
            observers: Observers::default(),
            janitor: Janitor::default(),
            round_due: Arc::default(),
            look_due: Arc::default(),
            column: Column::new(grants),
            undated: Undated::default(),
        });
        session.database.join(&session);
        tokio::spawn(round::run(Arc::downgrade(&session), session.round_due.clone()));
        tokio::spawn(looks::run(Arc::downgrade(&session), session.look_due.clone()));
        tokio::spawn(grants::run(Arc::downgrade(&session), session.undated.some.clone()));
        Ok(session)
    }

    pub(crate) fn dialect(&self) -> Dialect {
        self.database.dialect()
    }

    pub(crate) fn script(&self) -> Script {
        Script(self.dialect(), self.column.grants())
    }

    /// What is held and waited for. Never held across an await.
    pub(crate) fn book(&self) -> MutexGuard<'_, Book> {
        // Nothing panics while it is held.
        self.book.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Has the entry renewed and kept alive from now on.
    ///
    /// # Errors
    ///
    /// [`Error::Closed`].
    pub(crate) fn enter(&self, entry: &Arc<Entry>) -> Result<()> {
        match self.book().enter(entry) {
            None => Err(error::closed(self.dialect())),
            Some(earlier) => {
                if earlier {
                    self.round_due.notify_one();
                }
                Ok(())
            }
        }
    }

    /// Has `close` wait until this is dropped; `None` if it does not wait any more, but removes all
    /// that is in the book.
    pub(crate) fn busy(&self) -> Option<OwnedRwLockReadGuard<()>> {
        self.busy.clone().try_read_owned().ok()
    }

    pub(crate) fn forget(&self, entry: &Entry) {
        self.book().forget(entry);
    }

    /// Something has changed in a queue: whoever of this client waits in it looks now.
    pub(crate) fn ring(&self, name: &LockName) {
        if self.book().ring(name) {
            self.look_due.notify_one();
        }
        self.observers.ring(name);
    }

    /// Something has changed in a queue where others come first: only who is about to wait looks.
    #[cfg(any(feature = "sqlite", feature = "mysql"))]
    pub(crate) fn heard(&self, name: &LockName) {
        self.book().rings += 1;
        self.observers.ring(name);
    }

    /// Everything may have changed.
    #[cfg(feature = "postgres")]
    pub(crate) fn ring_all(&self) {
        self.book().ring_all();
        self.look_due.notify_one();
        self.observers.ring_all();
    }

    /// Sends a script that may be executed twice, again and again until it is answered. Answers
    /// when the answered one was sent, and the answer. Waits for its turn as long as the database
    /// answers others; the deadline is for the rest.
    ///
    /// # Errors
    ///
    /// [`Error::Unavailable`] at the deadline, or when the attempt is cancelled; its effect says
    /// whether the script may have been executed. What the database says to a script that it
    /// refuses for good.
    pub(crate) async fn insist(
        &self,
        (op, rank): (&'static str, Rank),
        script: impl Fn(Script) -> String,
        limit: Duration,
        mut deadline: Instant,
        attempt: Option<&Attempt>,
    ) -> Result<(Instant, Vec<Row>)> {
        let (dialect, mut effect, mut pause) = (self.dialect(), Effect::None, FIRST_PAUSE);
        loop {
            let asked = CLOCK.now();
            let turn = self.database.turn(rank, deadline.since(asked), attempt).await;
            let turn = match turn {
                Ok(turn) => turn,
                Err(Failure::Down(why)) => {
                    return Err(error::unavailable(dialect, op, effect, told(dialect, why)));
                }
                Err(_) => return Err(error::closed(dialect)),
            };
            deadline = deadline + CLOCK.now().since(asked);
            // What it may have left goes with everything else.
            if attempt.is_some() && self.book().is_closed() {
                return Err(error::closed(dialect));
            }
            // Written anew each time: it may name the time of day.
            let writer = self.script();
            let why = match self.database.run_in(turn, attempt, &script(writer), limit).await {
                Ok(answer) => return Ok(answer),
                Err(failure) if self.column_is_gone(writer, &failure) => continue,
                Err(Failure::Closed) => return Err(error::closed(dialect)),
                Err(Failure::Refused(why)) if is_final(dialect, &why) => {
                    return Err(error::after(effect, error::convert(dialect, op, why)));
                }
                Err(Failure::Barred(error)) => return Err(error::after(effect, error)),
                Err(Failure::Lost(why)) => {
                    effect = Effect::Unknown;
                    why
                }
                Err(Failure::Refused(why)) => {
                    if let Some(attempt) = attempt {
                        attempt.put_off(&why);
                    }
                    why
                }
                Err(Failure::Down(why)) => why,
            };
            if attempt.is_some() && self.book().is_closed() {
                return Err(error::closed(dialect));
            }
            let over = CLOCK.now() >= deadline || attempt.is_some_and(Attempt::is_cancelled);
            if over {
                return Err(error::unavailable(dialect, op, effect, told(dialect, why)));
            }
            sleep(jitter(pause)).await;
            pause = (pause * 2).min(LONGEST_PAUSE);
        }
    }

    /// Waits until it is an attempt's turn among those of this client that ask for the same name.
    ///
    /// # Errors
    ///
    /// [`Error::Unavailable`] after a silence of the database of `patience`, or when the attempt is
    /// cancelled.
    pub(crate) async fn own_turn<T>(
        &self,
        patience: Duration,
        attempt: &Attempt,
        turn: impl Future<Output = T>,
    ) -> Result<T> {
        let turn = self.database.while_answered(patience, attempt, turn).await;
        turn.map_err(|failure| failure.unsent(self.dialect(), "acquire"))
    }

    /// Removes entries from their queues.
    ///
    /// # Errors
    ///
    /// As [`insist`](Self::insist).
    pub(crate) async fn leave(
        &self,
        op: &'static str,
        entries: &[Arc<Entry>],
        doubtful: bool,
        deadline: Instant,
    ) -> Result<()> {
        let patience = entries.iter().map(|entry| entry.patience()).min().unwrap_or_default();
        let leave = |script: Script| script.leave(entries, doubtful, self.id);
        let left = self.insist((op, Rank::HandOver), leave, patience, deadline, None).await;
        entries.iter().for_each(|entry| self.database.changed(self, &entry.name));
        left.map(drop)
    }

    /// Gives everything back and ends.
    ///
    /// # Errors
    ///
    /// What was not given back, and why.
    pub(crate) async fn close(&self) -> Result<()> {
        let deadline = CLOCK.now() + CLOSE_LIMIT;
        let entries = self.book().close();
        entries.iter().for_each(|entry| entry.closed());
        // A request that is under way may enter its queue yet.
        let busy = timeout(deadline.since(CLOCK.now()), self.busy.write()).await;
        let mut result = Ok(());
        for entries in entries.chunks(CHUNK) {
            result = result.and(self.leave("close", entries, true, deadline).await);
        }
        // First: whoever is not busy yet would be let in behind what was removed.
        self.database.refuse();
        drop(busy);
        self.observers.ring_all();
        self.round_due.notify_one();
        self.look_due.notify_one();
        self.undated.some.notify_one();
        self.database.quit().await;
        match result {
            // Closed before, perhaps by somebody else at the same time.
            Err(Error::Closed { .. }) => Ok(()),
            result => result,
        }
    }
}

impl Drop for Session {
    fn drop(&mut self) {
        self.round_due.notify_one();
        self.look_due.notify_one();
        self.undated.some.notify_one();
    }
}

impl std::fmt::Debug for Session {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Session").field("id", &self.id).field("database", &self.database).finish()
    }
}
