//! The database of a client: the differences besides the language.

use std::{path::Path, time::Duration};

use lock_core::{Attempt, Instant, Reach};

use crate::{
    layout::{dialect::Dialect, row::Rows},
    wire::{
        failure::{self, Failure},
        limit::Limit,
        turns::{NoTurn, Rank, Turn, Turns},
    },
};

type Answer = Result<(Instant, Rows), Failure>;

/// A database that runs scripts.
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
            Self::Sqlite(sqlite) => sqlite.turns(),
            #[cfg(feature = "mysql")]
            Self::MySql(mysql) => mysql.turns(),
            #[cfg(feature = "postgres")]
            Self::Postgres(postgres) => postgres.turns(),
        }
    }

    /// Whether the database answers.
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
        caller: Option<&Attempt>,
    ) -> Result<Turn, Failure> {
        tokio::select! {
            biased;
            turn = self.turns().take(rank, patience) => turn.map_err(|why| Failure::no_turn(why, patience)),
            () = cancelled(caller) => Err(Failure::Down(failure::cancelled())),
        }
    }

    /// Waits for an effect of other scripts, as [`turn`](Self::turn) waits for a turn.
    ///
    /// # Errors
    ///
    /// [`Failure::Down`].
    pub(crate) async fn while_answered<T>(
        &self,
        patience: Duration,
        caller: &Attempt,
        wait: impl Future<Output = T>,
    ) -> Result<T, Failure> {
        tokio::select! {
            biased;
            done = self.turns().while_answered(patience, wait) => {
                done.ok_or_else(|| Failure::no_turn(NoTurn::Silent, patience))
            }
            () = caller.cancelled() => Err(Failure::Down(failure::cancelled())),
        }
    }

    /// Runs a script when it is its turn. Returns when it was sent, and all entries in its answer.
    ///
    /// # Errors
    ///
    /// See [`Failure`].
    pub(crate) async fn run(&self, rank: Rank, script: &str, limit: Duration) -> Answer {
        let turn = self.turn(rank, limit, None).await?;
        self.run_in(turn, None, script, limit).await
    }

    /// Same as [`run`](Self::run) in a turn, but sends nothing for an attempt that is cancelled.
    ///
    /// # Errors
    ///
    /// See [`Failure`].
    pub(crate) async fn run_in(
        &self,
        turn: Turn,
        caller: Option<&Attempt>,
        script: &str,
        limit: Duration,
    ) -> Answer {
        let limit = &Limit::new(limit);
        let answer = match self {
            #[cfg(feature = "sqlite")]
            Self::Sqlite(sqlite) => sqlite.run(script, limit, turn, caller).await,
            #[cfg(feature = "mysql")]
            Self::MySql(mysql) => mysql.run(script, limit, turn, caller).await,
            #[cfg(feature = "postgres")]
            Self::Postgres(postgres) => postgres.run(script, limit, turn, caller).await,
        };
        match &answer {
            Ok(_) | Err(Failure::Refused(_)) => self.turns().note_answer(),
            // The caller has left, or this client is closed.
            Err(_) if caller.is_some_and(Attempt::is_cancelled) => {}
            Err(Failure::Closed) => {}
            Err(Failure::Down(why) | Failure::Lost(why)) => self.turns().reach.broke(why),
            Err(Failure::Barred(why)) => self.turns().reach.broke(why),
        }
        answer
    }

    /// Checks that pushes still come, where the database pushes.
    pub(crate) fn check_pushes(&self) {
        match self {
            #[cfg(feature = "postgres")]
            Self::Postgres(postgres) => postgres.check(),
            #[allow(unreachable_patterns, reason = "there may be no other feature")]
            _ => {}
        }
    }

    /// The database's name within this process, where its clients wake each other; `None` where the
    /// server wakes them.
    pub(crate) fn known_as(&self) -> Option<&str> {
        match self {
            #[cfg(feature = "sqlite")]
            Self::Sqlite(sqlite) => Some(sqlite.real()),
            #[cfg(feature = "mysql")]
            Self::MySql(mysql) => Some(mysql.address()),
            #[cfg(feature = "postgres")]
            Self::Postgres(_) => None,
        }
    }

    /// The database, if it is one that pushes.
    #[cfg(feature = "postgres")]
    pub(crate) fn pushing(&self) -> Option<&super::postgres::Postgres> {
        match self {
            Self::Postgres(postgres) => Some(postgres),
            #[allow(unreachable_patterns, reason = "there may be no other feature")]
            _ => None,
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

    /// Refuses all further scripts.
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

    /// Ends the connections to a server properly.
    pub(crate) async fn quit(&self) {
        match self {
            // The file stays open until the last handle is dropped: the last close copies SQLite's
            // log into it and waits for the disk, which a process that ends need not do.
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
async fn cancelled(caller: Option<&Attempt>) {
    match caller {
        Some(caller) => caller.cancelled().await,
        None => std::future::pending().await,
    }
}
