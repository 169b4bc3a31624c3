//! The database of a client: what differs besides the language.

use std::{path::Path, sync::Arc, time::Duration};

use lock_core::{Attempt, Error, Instant, LockName, Reach, Result};

use crate::{
    config::{SqlConfig, Target},
    layout::{dialect::Dialect, row::Row, schema::Grants},
    session::{Session, attempt::Entry},
    wire::{
        connections::{self, Failure},
        limit::Limit,
        own_client::{Kind, OwnPool},
        turns::{NoTurn, Rank, Turn, Turns},
    },
};

type Answer = Result<(Instant, Vec<Row>), Failure>;

/// Scripts go in, entries come out.
#[derive(Debug)]
pub(crate) enum Database {
    #[cfg(feature = "sqlite")]
    Sqlite(Box<super::sqlite::Sqlite>),
    #[cfg(feature = "mysql")]
    MySql(super::mysql::MySql),
    #[cfg(feature = "postgres")]
    Postgres(Box<super::postgres::Postgres>),
}

impl Database {
    /// Connects, and creates the tables if there are none.
    ///
    /// # Errors
    ///
    /// As [`SqlLock::connect`](crate::SqlLock::connect).
    pub(crate) async fn open(config: &SqlConfig) -> Result<(Self, Grants)> {
        match &config.target {
            #[cfg(feature = "sqlite")]
            Target::File { path } => {
                let file = super::sqlite::Sqlite::open(path.as_deref()).await?;
                // Each connection sees to the column: whoever may write a file may alter it.
                Ok((Self::Sqlite(Box::new(file)), Grants::Dated))
            }
            #[cfg(feature = "sqlite")]
            Target::Pool(OwnPool(Kind::Sqlite(pool))) => {
                let file = super::sqlite::Sqlite::of_pool(pool).await?;
                Ok((Self::Sqlite(Box::new(file)), Grants::Dated))
            }
            #[cfg(feature = "mysql")]
            Target::MySql(server) => Self::MySql(super::mysql::MySql::new(server)).prepared().await,
            #[cfg(feature = "mysql")]
            Target::Pool(OwnPool(Kind::MySql(pool))) => {
                Self::MySql(super::mysql::MySql::of_pool(pool)?).prepared().await
            }
            #[cfg(feature = "postgres")]
            Target::Pool(OwnPool(Kind::Postgres(pool))) => {
                Self::Postgres(Box::new(super::postgres::Postgres::of_pool(pool))).prepared().await
            }
            #[cfg(feature = "postgres")]
            Target::Postgres(server) => {
                Self::Postgres(Box::new(super::postgres::Postgres::new(server))).prepared().await
            }
            #[allow(unreachable_patterns, reason = "all features may be there")]
            _ => {
                let store = config.dialect().store();
                let what = format!("be used: build lock-sql with feature {store:?}");
                Err(Error::Unsupported { store, what })
            }
        }
    }

    #[cfg(any(feature = "mysql", feature = "postgres"))]
    async fn prepared(self) -> Result<(Self, Grants)> {
        let grants = super::server::prepare(&self).await?;
        Ok((self, grants))
    }

    pub(crate) fn dialect(&self) -> Dialect {
        match self {
            #[cfg(feature = "sqlite")]
            Self::Sqlite(_) => Dialect::Sqlite,
            #[cfg(feature = "mysql")]
            Self::MySql(_) => Dialect::MySql,
            #[cfg(feature = "postgres")]
            Self::Postgres(_) => Dialect::Postgres,
        }
    }

    fn turns(&self) -> &Turns {
        match self {
            #[cfg(feature = "sqlite")]
            Self::Sqlite(sqlite) => &sqlite.place().turns,
            #[cfg(feature = "mysql")]
            Self::MySql(mysql) => mysql.turns(),
            #[cfg(feature = "postgres")]
            Self::Postgres(postgres) => postgres.turns(),
        }
    }

    /// Whether it answers.
    pub(crate) fn reach(&self) -> Reach {
        self.turns().reach.clone()
    }

    /// Waits for a turn to run a script, unless the attempt is cancelled. Only a silence of the
    /// database of `patience` ends the wait: a turn in this process is no outage.
    ///
    /// # Errors
    ///
    /// [`Failure::Closed`] and [`Failure::Down`].
    pub(crate) async fn turn(
        &self,
        rank: Rank,
        patience: Duration,
        attempt: Option<&Attempt>,
    ) -> Result<Turn, Failure> {
        tokio::select! {
            biased;
            turn = self.turns().take(rank, patience) => turn.map_err(|why| Failure::no_turn(why, patience)),
            () = cancelled(attempt) => Err(Failure::Down(connections::cancelled())),
        }
    }

    /// Waits for what other scripts bring about, as [`turn`](Self::turn) does for a turn.
    ///
    /// # Errors
    ///
    /// [`Failure::Down`].
    pub(crate) async fn while_answered<T>(
        &self,
        patience: Duration,
        attempt: &Attempt,
        wait: impl Future<Output = T>,
    ) -> Result<T, Failure> {
        tokio::select! {
            biased;
            done = self.turns().while_answered(patience, wait) => {
                done.ok_or_else(|| Failure::no_turn(NoTurn::Silent, patience))
            }
            () = attempt.cancelled() => Err(Failure::Down(connections::cancelled())),
        }
    }

    /// Runs a script when it is its turn. Answers when it was sent, and all entries that it
    /// answers.
    ///
    /// # Errors
    ///
    /// See [`Failure`].
    pub(crate) async fn run(&self, rank: Rank, script: &str, limit: Duration) -> Answer {
        let turn = self.turn(rank, limit, None).await?;
        self.run_in(turn, None, script, limit).await
    }

    /// As [`run`](Self::run) in a turn, but nothing is sent for an attempt that is cancelled.
    ///
    /// # Errors
    ///
    /// See [`Failure`].
    pub(crate) async fn run_in(
        &self,
        turn: Turn,
        attempt: Option<&Attempt>,
        script: &str,
        limit: Duration,
    ) -> Answer {
        let limit = &Limit::new(limit);
        let answer = match self {
            #[cfg(feature = "sqlite")]
            Self::Sqlite(sqlite) => sqlite.run(script, limit, turn, attempt).await,
            #[cfg(feature = "mysql")]
            Self::MySql(mysql) => mysql.run(script, limit, turn, attempt).await,
            #[cfg(feature = "postgres")]
            Self::Postgres(postgres) => postgres.run(script, limit, turn, attempt).await,
        };
        match &answer {
            Ok(_) | Err(Failure::Refused(_)) => self.turns().note_answer(),
            // Its caller has left, or this client has.
            Err(_) if attempt.is_some_and(Attempt::is_cancelled) => {}
            Err(Failure::Closed) => {}
            Err(Failure::Down(why) | Failure::Lost(why)) => self.turns().reach.broke(why),
            Err(Failure::Barred(why)) => self.turns().reach.broke(why),
        }
        answer
    }

    /// The session is one of those that use the database.
    pub(crate) fn join(&self, session: &Arc<Session>) {
        match self {
            #[cfg(feature = "sqlite")]
            Self::Sqlite(sqlite) => sqlite.place().join(session),
            #[cfg(feature = "mysql")]
            Self::MySql(mysql) => mysql.place().join(session),
            #[cfg(feature = "postgres")]
            Self::Postgres(postgres) => postgres.listen(session),
        }
    }

    /// This session has changed a queue: whoever of this process waits in it looks.
    pub(crate) fn changed(&self, session: &Session, name: &LockName) {
        session.ring(name);
        self.changed_by(session, name);
    }

    /// As [`changed`](Self::changed), but the session itself knows.
    pub(crate) fn changed_by(&self, session: &Session, name: &LockName) {
        match self {
            #[cfg(feature = "sqlite")]
            Self::Sqlite(sqlite) => sqlite.place().ring(session, name),
            #[cfg(feature = "mysql")]
            Self::MySql(mysql) => mysql.place().ring(session, name),
            // They hear of it from the server.
            #[cfg(feature = "postgres")]
            Self::Postgres(_) => {
                let _ = (session, name);
            }
        }
    }

    /// The attempt holds the lock from now on.
    pub(crate) fn entered(&self, session: &Session, entry: &Entry) {
        if entry.leads {
            self.changed(session, &entry.name);
        } else if entry.kind != lock_core::Kind::Exclusive {
            // The next one may get in, too.
            self.changed_by(session, &entry.name);
        }
    }

    /// Whoever is told of changes makes sure, from time to time, that he is.
    pub(crate) fn check_pushes(&self) {
        match self {
            #[cfg(feature = "postgres")]
            Self::Postgres(postgres) => postgres.check(),
            #[allow(unreachable_patterns, reason = "there may be no other feature")]
            _ => {}
        }
    }

    pub(crate) fn path(&self) -> Option<&Path> {
        match self {
            #[cfg(feature = "sqlite")]
            Self::Sqlite(sqlite) => Some(sqlite.path()),
            #[allow(unreachable_patterns, reason = "there may be no other feature")]
            _ => None,
        }
    }

    #[cfg(all(feature = "properties", feature = "sqlite"))]
    pub(crate) fn faults(&self) -> super::faults::Faults {
        match self {
            Self::Sqlite(sqlite) => sqlite.faults(),
            #[allow(unreachable_patterns, reason = "there may be no other feature")]
            _ => super::faults::Faults::default(),
        }
    }

    /// Runs no script any more.
    pub(crate) fn refuse(&self) {
        match self {
            #[cfg(feature = "sqlite")]
            Self::Sqlite(sqlite) => sqlite.refuse(),
            #[cfg(feature = "mysql")]
            Self::MySql(mysql) => mysql.refuse(),
            #[cfg(feature = "postgres")]
            Self::Postgres(postgres) => postgres.refuse(),
        }
    }

    /// Ends the connections to a server, as servers like it.
    pub(crate) async fn quit(&self) {
        match self {
            // The file stays open until the last handle is dropped: who closes it last copies
            // SQLite's log into it and waits for the disk, which a process that ends need not do.
            #[cfg(feature = "sqlite")]
            Self::Sqlite(_) => {}
            #[cfg(feature = "mysql")]
            Self::MySql(mysql) => mysql.quit().await,
            #[cfg(feature = "postgres")]
            Self::Postgres(postgres) => postgres.quit().await,
        }
    }
}

/// Waits until the caller of an attempt has left; for ever where there is none.
async fn cancelled(attempt: Option<&Attempt>) {
    match attempt {
        Some(attempt) => attempt.cancelled().await,
        None => std::future::pending().await,
    }
}
