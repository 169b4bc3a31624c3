//! A few connections to one database.

use std::{
    sync::{Mutex, MutexGuard, PoisonError},
    time::Duration,
};

use lock_core::{Attempt, Instant};
use sqlx::{AssertSqlSafe, Connection, raw_sql};
use tokio::{
    sync::{Notify, Semaphore},
    time::timeout,
};

use crate::{dialect::stamp, row::Row, session::CLOCK};

/// Why a script has no answer.
#[derive(Debug)]
pub(crate) enum Failure {
    Closed,
    /// Not sent: there is no connection now.
    Down(sqlx::Error),
    /// Sent perhaps, and perhaps executed.
    Lost(sqlx::Error),
    /// The database refused it.
    Refused(sqlx::Error),
}

/// Connections that are made when they are needed, and used by one script at a time. Not the library's
/// pool: that one asks the server after each use whether it is still there, which would be as many
/// requests again.
pub(crate) struct Connections<C: Connection> {
    options: C::Options,
    /// What a connection is to be told first.
    setup: &'static str,
    idle: Mutex<Vec<C>>,
    /// Rings when one comes back.
    back: Notify,
    room: Semaphore,
}

macro_rules! connections {
    ($connection:ty) => {
        impl Connections<$connection> {
            /// Runs a script, unless its attempt has been cancelled by the time that there is a
            /// connection. Answers when it was sent, and all entries that it answers.
            ///
            /// # Errors
            ///
            /// See [`Failure`].
            pub(crate) async fn run(
                &self,
                script: &str,
                limit: Duration,
                attempt: Option<&Attempt>,
            ) -> Result<(Instant, Vec<Row>), Failure> {
                let _room = match timeout(limit, self.room.acquire()).await {
                    Ok(room) => room.map_err(|_| Failure::Closed)?,
                    Err(_) => return Err(Failure::Down(silent(limit))),
                };
                let mut connection = tokio::select! {
                    biased;
                    connection = self.unused() => connection,
                    connected = self.connect(limit) => connected?,
                };
                if attempt.is_some_and(Attempt::is_cancelled) {
                    self.put_back(connection);
                    return Err(Failure::Down(cancelled()));
                }
                let sent = CLOCK.now();
                let script = stamp(script, sent);
                let rows = raw_sql(AssertSqlSafe(script)).fetch_all(&mut connection);
                let error = match timeout(limit, rows).await {
                    Ok(Ok(rows)) => {
                        let rows = rows.iter().filter(|row| sqlx::Row::len(*row) > 1);
                        let rows = rows.map(Row::read).collect::<sqlx::Result<Vec<_>>>();
                        self.put_back(connection);
                        return rows.map(|rows| (sent, rows)).map_err(Failure::Refused);
                    }
                    Ok(Err(error)) => error,
                    Err(_) => silent(limit),
                };
                if error.as_database_error().is_none() {
                    // The others are likely to be broken, too.
                    self.idle().clear();
                    return Err(Failure::Lost(error));
                }
                // A script that ended half-way has left its transaction open, if it had one.
                let rollback = raw_sql("ROLLBACK").execute(&mut connection);
                match timeout(limit, rollback).await {
                    Ok(Ok(_) | Err(sqlx::Error::Database(_))) => self.put_back(connection),
                    Ok(Err(_)) | Err(_) => self.idle().clear(),
                }
                Err(Failure::Refused(error))
            }

            async fn connect(&self, limit: Duration) -> Result<$connection, Failure> {
                let connect = async {
                    let mut connection = <$connection>::connect_with(&self.options).await?;
                    raw_sql(self.setup).execute(&mut connection).await?;
                    Ok(connection)
                };
                match timeout(limit, connect).await {
                    Ok(connected) => connected.map_err(Failure::Down),
                    Err(_) => Err(Failure::Down(silent(limit))),
                }
            }
        }
    };
}

#[cfg(feature = "mysql")]
connections!(sqlx::MySqlConnection);
#[cfg(feature = "postgres")]
connections!(sqlx::PgConnection);
#[cfg(feature = "sqlite")]
connections!(sqlx::SqliteConnection);

impl<C: Connection> Connections<C> {
    /// At most `most` connections, each of which is told `setup` first.
    pub(crate) fn new(options: C::Options, setup: &'static str, most: usize) -> Self {
        Self {
            options,
            setup,
            idle: Mutex::default(),
            back: Notify::new(),
            room: Semaphore::new(most),
        }
    }

    /// Waits for a connection that nobody uses: often one comes back sooner than a new one is made.
    async fn unused(&self) -> C {
        loop {
            let idle = self.idle().pop();
            match idle {
                Some(connection) => return connection,
                None => self.back.notified().await,
            }
        }
    }

    pub(crate) fn put_back(&self, connection: C) {
        self.idle().push(connection);
        self.back.notify_one();
    }

    fn idle(&self) -> MutexGuard<'_, Vec<C>> {
        // Nothing panics while it is held.
        self.idle.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Runs no script any more.
    pub(crate) fn refuse(&self) {
        self.room.close();
    }

    /// Ends all connections.
    #[cfg(any(feature = "mysql", feature = "postgres"))]
    pub(crate) fn close(&self) {
        self.refuse();
        self.idle().clear();
    }
}

/// The library's options show the password.
impl<C: Connection> std::fmt::Debug for Connections<C> {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Connections").finish_non_exhaustive()
    }
}

fn cancelled() -> sqlx::Error {
    sqlx::Error::Io(std::io::Error::other("nobody waits for the answer any more"))
}

fn silent(limit: Duration) -> sqlx::Error {
    sqlx::Error::Io(std::io::Error::new(
        std::io::ErrorKind::TimedOut,
        format!("no answer within {limit:?}"),
    ))
}
