//! A few connections to one database.

use std::{
    sync::{Arc, Mutex, MutexGuard, PoisonError},
    time::Duration,
};

use lock_core::{Attempt, Effect, Error, Instant};
use sqlx::{AssertSqlSafe, Connection, raw_sql};
use tokio::{
    runtime::Handle,
    sync::{Notify, OwnedSemaphorePermit, Semaphore},
    time::timeout,
};

use crate::{
    dialect::{Dialect, stamp},
    error::{self, is_passing, is_spent, may_have_run},
    limit::{self, Limit},
    pool::Way,
    row::Row,
    session::CLOCK,
    turns::{NoTurn, Rank, Turn, Turns},
};

/// How long a connection may take that is being made, even if the script that wants it waits for
/// less.
const MAKING: Duration = Duration::from_secs(1);

/// How long a server executes a script at the most whose client has given up: longer than its own
/// limits, which the settings of a connection say.
const STALL: Duration = Duration::from_secs(4);

/// How long saying goodbye may take, which no server answers.
const GOODBYE: Duration = Duration::from_millis(200);

/// Why a script has no answer.
#[derive(Debug)]
pub(crate) enum Failure {
    Closed,
    /// Not sent: there is no connection, and no patience helps.
    Barred(Error),
    /// Not sent: there is no connection now.
    Down(sqlx::Error),
    /// Sent perhaps, and perhaps executed.
    Lost(sqlx::Error),
    /// The database refused it.
    Refused(sqlx::Error),
}

impl Failure {
    /// Why there is no connection to a server.
    #[cfg(any(feature = "mysql", feature = "postgres"))]
    pub(crate) fn unconnected(dialect: Dialect, why: sqlx::Error) -> Self {
        match error::is_final(dialect, &why) {
            true => Self::Barred(error::not_sent(dialect, "connect", why)),
            false => Self::Down(why),
        }
    }

    /// The server takes no writes; it may soon, or the address may lead to another one.
    #[cfg(any(feature = "mysql", feature = "postgres"))]
    pub(crate) fn read_only(why: &str) -> Self {
        Self::Down(sqlx::Error::Io(std::io::Error::other(why.to_owned())))
    }

    /// Why there is no turn after this much patience.
    pub(crate) fn no_turn(why: NoTurn, patience: Duration) -> Self {
        match why {
            NoTurn::Closed => Self::Closed,
            NoTurn::Silent => Self::Down(limit::over(patience)),
        }
    }

    /// What a client is told that opens the database.
    pub(crate) fn opening(self, dialect: Dialect) -> Error {
        self.unsent(dialect, "connect")
    }

    /// The error of a request that has had no effect.
    pub(crate) fn unsent(self, dialect: Dialect, op: &'static str) -> Error {
        match self {
            Self::Closed => error::closed(dialect),
            Self::Barred(error) => error,
            Self::Down(why) => {
                let why = error::told(dialect, why);
                error::unavailable(dialect, op, Effect::None, why)
            }
            Self::Lost(why) | Self::Refused(why) => error::not_sent(dialect, op, why),
        }
    }
}

/// Connections that are made when they are needed, and used by one script at a time. Not the
/// library's pool: that one asks the server after each use whether it is still there, which would
/// be as many requests again.
pub(crate) struct Connections<C: Connection> {
    way: Way<C>,
    /// Nothing once all have said goodbye: whatever comes back then does so, too.
    idle: Mutex<Option<Vec<Made<C>>>>,
    /// One that only renewals use, where several scripts run at once: they wait for none to be
    /// made, and for none to come back.
    reserved: Mutex<Option<Made<C>>>,
    /// Rings when one comes back.
    back: Notify,
    /// For each connection that there is, also while it is being made.
    places: Arc<Semaphore>,
    most: usize,
    /// For scripts that the server still executes, though their clients have given up. They do not
    /// keep others from their turns, as long as there are few of them.
    stragglers: Turns,
}

/// A connection in its place.
struct Made<C> {
    connection: C,
    /// When it was last seen to work.
    answered: Instant,
    place: OwnedSemaphorePermit,
}

/// A connection that executes a script, in its turn. Given up before the answer, it keeps its
/// place, or one of the stragglers', until the server has ended the script: so a stall cannot use
/// up the server's connections.
struct Busy<C: Connection + 'static> {
    made: Option<Made<C>>,
    turn: Option<Turn>,
    connections: Arc<Connections<C>>,
}

macro_rules! connections {
    ($connection:ty, $dialect:expr, $connect:path) => {
        impl Connections<$connection> {
            /// Runs a script in its turn, unless its attempt has been cancelled by the time that
            /// there is a connection. Answers when it was sent, and all entries that it answers.
            ///
            /// # Errors
            ///
            /// See [`Failure`].
            pub(crate) async fn run(
                self: &Arc<Self>,
                script: &str,
                limit: &Limit,
                turn: Turn,
                attempt: Option<&Attempt>,
            ) -> Result<(Instant, Vec<Row>), Failure> {
                if self.is_refusing() {
                    return Err(Failure::Closed);
                }
                let reserved = match turn.rank {
                    Rank::Renew => self.reserved().take(),
                    Rank::HandOver | Rank::Ask => None,
                };
                let made = match reserved {
                    Some(made) => made,
                    None => limit.keep(self.take(limit)).await.map_err(Failure::Down)??,
                };
                let mut busy = Busy::new(self, made, turn);
                let unsent = match attempt.is_some_and(Attempt::is_cancelled) {
                    true => Some(cancelled()),
                    // Nobody would wait for the answer, and the connection would be given up.
                    false => limit.is_short().then(|| limit.over()),
                };
                if let Some(unsent) = unsent {
                    busy.put_back();
                    return Err(Failure::Down(unsent));
                }
                let sent = CLOCK.now();
                let script = stamp(script, sent);
                let rows = raw_sql(AssertSqlSafe(script)).fetch_all(busy.connection()?);
                let error = match limit.keep(rows).await {
                    Ok(Ok(rows)) => {
                        busy.has_answered();
                        busy.put_back();
                        let rows = rows.iter().filter(|row| sqlx::Row::len(*row) > 1);
                        let rows = rows.map(Row::read).collect::<sqlx::Result<Vec<_>>>();
                        return rows.map(|rows| (sent, rows)).map_err(Failure::Refused);
                    }
                    Ok(Err(error)) => error,
                    Err(over) => {
                        // The others are likely to be broken, too, unless they have worked
                        // meanwhile.
                        self.forget_since(sent);
                        return Err(Failure::Lost(over));
                    }
                };
                if may_have_run($dialect, &error) {
                    busy.discard();
                    self.forget();
                    return Err(Failure::Lost(error));
                }
                if is_spent($dialect, &error) {
                    busy.discard();
                    self.forget();
                    return Err(Failure::Refused(error));
                }
                // A script that ended half-way has left its transaction open, if it had one.
                let rollback = raw_sql("ROLLBACK").execute(busy.connection()?);
                match limit.keep(rollback).await {
                    Ok(Ok(_) | Err(sqlx::Error::Database(_))) => busy.put_back(),
                    Ok(Err(_)) => {
                        busy.discard();
                        self.forget();
                    }
                    Err(_) => self.forget_since(sent),
                }
                Err(Failure::Refused(error))
            }

            /// A connection that nobody uses: often one comes back sooner than a new one is made.
            async fn take(self: &Arc<Self>, limit: &Limit) -> Result<Made<$connection>, Failure> {
                loop {
                    tokio::select! {
                        biased;
                        made = self.unused() => return Ok(made),
                        added = self.add(limit.whole().max(MAKING)) => match added {
                            // The server has no room for one more.
                            Err(Failure::Down(why)) if self.has_others() && is_passing($dialect, &why) => {
                                return Ok(self.unused().await);
                            }
                            added => added?,
                        },
                    }
                }
            }

            /// Makes one more connection as soon as there is a place for it. Goes on when nobody
            /// waits for it any more: MySQL blocks a host that leaves many connections half-made.
            async fn add(self: &Arc<Self>, limit: Duration) -> Result<(), Failure> {
                let place = self.places.clone().acquire_owned().await;
                let (connections, place) = (self.clone(), place.map_err(|_| Failure::Closed)?);
                let making = tokio::spawn(async move {
                    let made = Limit::new(limit).keep($connect(&(connections.way)())).await;
                    let connection = made.map_err(Failure::Down)??;
                    let answered = CLOCK.now();
                    connections.put_back(Made { connection, answered, place });
                    Ok(())
                });
                match making.await {
                    Ok(made) => made,
                    Err(panic) if panic.is_panic() => {
                        Err(Failure::Down(sqlx::Error::Io(std::io::Error::other(panic))))
                    }
                    // The runtime ends.
                    Err(_) => Err(Failure::Closed),
                }
            }
        }
    };
}

#[cfg(feature = "mysql")]
connections!(sqlx::MySqlConnection, Dialect::MySql, crate::mysql::connect);
#[cfg(feature = "postgres")]
connections!(sqlx::PgConnection, Dialect::Postgres, crate::postgres::connect);
#[cfg(feature = "sqlite")]
connections!(sqlx::SqliteConnection, Dialect::Sqlite, crate::sqlite::connect);

impl<C: Connection> Connections<C> {
    /// For as many scripts of each rank at once, as [`Turns::new`]; and for as many whose clients
    /// have given up.
    pub(crate) fn new(way: Way<C>, places: [usize; 3]) -> Arc<Self> {
        let most = places[0];
        Arc::new(Self {
            way,
            idle: Mutex::new(Some(Vec::new())),
            reserved: Mutex::new(None),
            back: Notify::new(),
            places: Arc::new(Semaphore::new(most)),
            most,
            stragglers: Turns::new(places),
        })
    }

    fn has_others(&self) -> bool {
        self.places.available_permits() < self.most
    }

    async fn unused(&self) -> Made<C> {
        loop {
            let idle = self.idle().as_mut().and_then(Vec::pop);
            match idle {
                Some(made) => return made,
                None => self.back.notified().await,
            }
        }
    }

    fn put_back(&self, made: Made<C>) {
        match &mut *self.idle() {
            Some(idle) => idle.push(made),
            None => drop(tokio::spawn(made.connection.close())),
        }
        self.back.notify_one();
    }

    fn put_back_of(&self, rank: Rank, made: Made<C>) {
        let mut reserved = self.reserved();
        let are_several = self.most - self.places.available_permits() > 1;
        let keeps = rank == Rank::Renew && are_several && !self.is_refusing();
        match &*reserved {
            None if keeps => *reserved = Some(made),
            _ => {
                drop(reserved);
                self.put_back(made);
            }
        }
    }

    fn reserved(&self) -> MutexGuard<'_, Option<Made<C>>> {
        // Nothing panics while it is held.
        self.reserved.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Uses none of these connections again.
    pub(crate) fn forget(&self) {
        *self.reserved() = None;
        if let Some(idle) = &mut *self.idle() {
            idle.clear();
        }
    }

    /// Uses none of these connections again that has been silent since then.
    fn forget_since(&self, then: Instant) {
        self.reserved().take_if(|made| made.answered <= then);
        if let Some(idle) = &mut *self.idle() {
            idle.retain(|made| made.answered > then);
        }
    }

    fn idle(&self) -> MutexGuard<'_, Option<Vec<Made<C>>>> {
        // Nothing panics while it is held.
        self.idle.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Runs no script any more.
    pub(crate) fn refuse(&self) {
        self.places.close();
    }

    pub(crate) fn is_refusing(&self) -> bool {
        self.places.is_closed()
    }

    /// Ends all connections, and says so: MySQL and MariaDB complain in their logs of those that
    /// are only cut off.
    #[cfg(any(feature = "mysql", feature = "postgres"))]
    pub(crate) async fn quit(&self) {
        self.refuse();
        let (idle, reserved) = (self.idle().take(), self.reserved().take());
        let quits = async {
            for Made { connection, place: _place, .. } in idle.into_iter().flatten().chain(reserved)
            {
                let _ = connection.close().await;
            }
        };
        // A server that does not read finds them closed.
        let _ = timeout(GOODBYE, quits).await;
    }
}

impl<C: Connection + 'static> Busy<C> {
    fn new(connections: &Arc<Connections<C>>, made: Made<C>, turn: Turn) -> Self {
        Self { made: Some(made), turn: Some(turn), connections: connections.clone() }
    }

    /// # Errors
    ///
    /// None: it is there until it is put back or discarded.
    fn connection(&mut self) -> Result<&mut C, Failure> {
        self.made.as_mut().map(|made| &mut made.connection).ok_or(Failure::Closed)
    }

    fn has_answered(&mut self) {
        if let Some(made) = &mut self.made {
            made.answered = CLOCK.now();
        }
    }

    /// The script is over, or was not sent.
    fn put_back(&mut self) {
        if let Some(made) = self.made.take() {
            let rank = self.turn.as_ref().map_or(Rank::Ask, |turn| turn.rank);
            self.connections.put_back_of(rank, made);
        }
    }

    /// The connection is broken.
    fn discard(&mut self) {
        self.made = None;
    }
}

impl<C: Connection + 'static> Drop for Busy<C> {
    fn drop(&mut self) {
        let (Some(made), Some(turn), Ok(runtime)) =
            (self.made.take(), self.turn.take(), Handle::try_current())
        else {
            return;
        };
        let Made { connection, place, .. } = made;
        match self.connections.stragglers.try_take(turn.rank) {
            Some(held) => drop(runtime.spawn(end(connection, held))),
            None => drop(runtime.spawn(end(connection, (turn, place)))),
        }
    }
}

/// Waits until the server has ended the script, which it does by itself after a while, and says
/// goodbye.
async fn end<C: Connection>(mut connection: C, held: impl Send) {
    if let Ok(Ok(())) = timeout(STALL, connection.ping()).await {
        let _ = timeout(GOODBYE, connection.close()).await;
    }
    drop(held);
}

/// The library's options show the password.
impl<C: Connection> std::fmt::Debug for Connections<C> {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Connections").finish_non_exhaustive()
    }
}

pub(crate) fn cancelled() -> sqlx::Error {
    sqlx::Error::Io(std::io::Error::other("nobody waits for the answer any more"))
}
