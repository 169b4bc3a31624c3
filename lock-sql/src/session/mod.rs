//! One client: its connections, and what it holds and waits for.

pub(crate) mod attempt;
pub(crate) mod book;
mod janitor;
mod neighbours;
mod renewal;
mod start;

use std::{
    sync::{Arc, Mutex, MutexGuard, Weak},
    time::Duration,
};

use lock_core::{
    Clock, Effect, Error, Instant, Kind, LockName, Reach, Result,
    keep::{
        backoff::Backoff,
        departures::Departures,
        errors::unavailable,
        limits,
        poison::lock,
        share::{Shared, share},
    },
};
use tokio::sync::{Notify, OwnedRwLockReadGuard, RwLock};
use uuid::Uuid;

use self::{
    attempt::{Attempt, Leaving},
    book::Book,
};
use crate::{
    election::observers::Observers,
    error::{self, is_final, worded},
    layout::dialect::Dialect,
    wire::{
        database::{Call, Database, Reply},
        failure::Failure,
        script::Script,
        turns::Rank,
    },
};

/// Pause between sendings of the same script.
const PAUSE: Backoff = Backoff::new(Duration::from_millis(5), Duration::from_millis(250));
/// How long a removal waits for its answer. The longest is longer than the server's own limit, so
/// that a server that works has answered.
const SHORTEST_REMOVAL: Duration = Duration::from_millis(100);
const LONGEST_REMOVAL: Duration = Duration::from_secs(4);
/// Most attempts that one statement names.
const CHUNK: usize = 500;

/// A client of the database.
pub(crate) struct Session {
    pub(crate) id: Uuid,
    pub(crate) database: Box<dyn Database>,
    book: Mutex<Book>,
    pub(crate) observers: Observers,
    /// The clients of this process that use the same database; `None` where the database wakes
    /// them.
    neighbours: Option<Arc<Neighbours>>,
    /// The ways into the queues.
    entrances: Shared<LockName, Entrance>,
    /// Locked for reading by each task that may leave an attempt in the database, or removes one.
    /// Locked for writing by `close`, when all of that is over.
    busy: Arc<RwLock<()>>,
    departures: Departures<Leaving>,
    /// Rings when a renewal is due earlier than before, another server has taken over, or the
    /// session ends.
    pub(crate) renewal_bell: Arc<Notify>,
    /// Rings when a look is due earlier than before, or the session ends.
    pub(crate) look_bell: Arc<Notify>,
    /// The pauses after looks that fail from now on.
    pub(crate) look_pauses: Mutex<Backoff>,
}

impl Session {
    pub(crate) fn dialect(&self) -> Dialect {
        self.database.dialect()
    }

    /// See [`Database::paced_as`].
    pub(crate) fn paced_as(&self) -> Dialect {
        self.database.paced_as()
    }

    pub(crate) fn reach(&self) -> &Reach {
        &self.database.turns().reach
    }

    pub(crate) fn script(&self) -> Script {
        Script(self.dialect())
    }

    /// The client's attempts. The guard is never held across an await.
    pub(crate) fn book(&self) -> MutexGuard<'_, Book> {
        lock(&self.book)
    }

    /// Makes `close` wait until the guard is dropped. Fails once `close` does not wait any more,
    /// but removes all attempts in the book.
    pub(crate) fn busy(&self) -> Result<OwnedRwLockReadGuard<()>> {
        let busy = self.busy.clone().try_read_owned();
        busy.map_err(|_| Error::closed(self.dialect().store()))
    }

    /// Notes that the attempt holds the lock from now on.
    pub(crate) fn entered(&self, attempt: &Attempt) {
        if attempt.leads {
            self.changed(&attempt.name);
        } else if attempt.kind != Kind::Exclusive {
            // The next attempt may get in, too.
            self.tell_neighbours(&attempt.name);
        }
    }

    /// The way into a queue. One per name, not per counter: an attempt stays in it as long as it is
    /// sent again, and the server lets others in between.
    pub(crate) fn entrance(&self, name: &LockName) -> Arc<Entrance> {
        share(&self.entrances, name.clone(), Entrance::default)
    }

    /// Sends a script until the database answers. Waits for its turn as long as the database
    /// answers other requests. Fails with [`Error::Unavailable`](lock_core::Error::Unavailable) at the
    /// deadline, or when the attempt is cancelled; its effect says whether the script may have been
    /// executed. Fails with the database's error if it refuses the script for good.
    pub(crate) async fn insist(
        &self,
        call: Call<'_>,
        script: impl Fn(Script) -> String,
    ) -> Result<Reply> {
        let Call { op, rank, patience, mut deadline, caller } = call;
        let (dialect, mut earlier, mut pause) = (self.dialect(), Effect::None, PAUSE);
        let too_late =
            |earlier, why| unavailable(dialect.store(), op, earlier, worded(dialect, why));
        let is_closed = || caller.is_some() && self.book().attempts.is_closed();
        loop {
            let asked = Clock::Boot.now();
            let turn = self.database.turn(rank, deadline.since(asked), caller).await;
            let turn = turn.map_err(|failure| match failure {
                Failure::Down(why) => too_late(earlier, why),
                _ => Error::closed(dialect.store()),
            })?;
            deadline = deadline + Clock::Boot.now().since(asked);
            if is_closed() {
                return Err(Error::closed(dialect.store()));
            }
            // Written anew each time: it may name the time of day.
            let script = script(self.script());
            let failure = match self.database.run_in(turn, &script, patience).await {
                Ok((sent, rows)) => return Ok(Reply { sent, rows, earlier }),
                Err(failure) => failure,
            };
            let why = match failure {
                Failure::Refused(why) if is_final(dialect, &why) => {
                    return Err(error::after(earlier, error::convert(dialect, op, why)));
                }
                Failure::Lost(why) => {
                    earlier = Effect::Unknown;
                    why
                }
                Failure::Refused(why) => {
                    if let Some(caller) = caller {
                        caller.put_off(&why);
                    }
                    why
                }
                Failure::Down(why) => why,
                failure => return Err(error::after(earlier, failure.unsent(dialect, op))),
            };
            if is_closed() {
                return Err(Error::closed(dialect.store()));
            }
            if Clock::Boot.now() >= deadline || caller.is_some_and(|it| it.is_cancelled()) {
                return Err(too_late(earlier, why));
            }
            pause.wait().await;
        }
    }

    /// Removes attempts from their queues.
    pub(crate) async fn leave(
        &self,
        op: &'static str,
        attempts: &[Arc<Attempt>],
        doubtful: bool,
        deadline: Instant,
    ) -> Result<()> {
        let ttl = attempts.iter().map(|attempt| attempt.ttl).min().unwrap_or_default();
        // A removal that is sent again makes a slow server slower.
        let half = deadline.since(Clock::Boot.now()) / 2;
        let patience = (ttl / 3).min(half).clamp(SHORTEST_REMOVAL, LONGEST_REMOVAL);
        let call = Call { op, rank: Rank::HandOver, patience, deadline, caller: None };
        let left = self.insist(call, |script| script.leave(attempts, doubtful, self.id)).await;
        attempts.iter().for_each(|attempt| self.changed(&attempt.name));
        left.map(drop)
    }

    /// Gives everything back and ends.
    pub(crate) async fn close(&self) -> Result<()> {
        let deadline = Clock::Boot.now() + limits::CLOSE;
        let attempts = self.book().close();
        attempts.iter().for_each(|attempt| attempt.closed());
        // A request that is under way may still enter its queue.
        let busy = Clock::Boot.timeout(limits::CLOSE, self.busy.write()).await;
        let mut result = Ok(());
        for attempts in attempts.chunks(CHUNK) {
            result = result.and(self.leave("close", attempts, true, deadline).await);
        }
        // Before the guard is dropped: otherwise a later request could enter a queue after the
        // removal.
        self.database.refuse();
        drop(busy);
        self.observers.ring_all();
        self.renewal_bell.notify_one();
        self.look_bell.notify_one();
        self.database.quit().await;
        match result {
            // Closed before, perhaps by another caller at the same time.
            Err(Error::Closed { .. }) => Ok(()),
            result => result,
        }
    }
}

impl Drop for Session {
    fn drop(&mut self) {
        self.renewal_bell.notify_one();
        self.look_bell.notify_one();
    }
}

/// All clients of one database.
type Neighbours = Mutex<Vec<Weak<Session>>>;

/// The way into a queue, which one attempt of this client passes at a time.
pub(crate) type Entrance = tokio::sync::Mutex<()>;

/// The database's options show the password.
impl std::fmt::Debug for Session {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        let mut session = f.debug_struct("Session");
        session.field("id", &self.id).field("store", &self.dialect().store()).finish()
    }
}
