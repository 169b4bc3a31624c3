//! The database of a client: the differences besides the language. What it is asked, and answers.

use std::{sync::Arc, time::Duration};

use async_trait::async_trait;
use lock_core::{Attempt, Effect, Instant};
use tokio::sync::Notify;

#[cfg(feature = "postgres")]
use crate::wire::postgres::pushes::Pushes;
use crate::{
    layout::{dialect::Dialect, row::Rows},
    wire::{
        failure::Failure,
        turns::{Limit, Rank, Turn, Turns},
    },
};

/// When a script was sent, and all entries in its answer.
pub(crate) type Answer = Result<(Instant, Rows), Failure>;

/// A database that runs scripts.
#[async_trait]
pub(crate) trait Database: Send + Sync {
    fn dialect(&self) -> Dialect;

    fn turns(&self) -> &Turns;

    /// Runs a script in its turn: see [`Connections::run`](super::connections::Connections::run).
    async fn execute(&self, script: &str, limit: &Limit, turn: Turn) -> Answer;

    /// Refuses all further scripts.
    fn refuse(&self);

    /// Ends the connections to a server properly.
    async fn quit(&self) {}

    /// The database's name within this process, where its clients wake each other; `None` where the
    /// server wakes them.
    fn known_as(&self) -> Option<&str> {
        None
    }

    /// The database at whose pace its clients look and renew: where no client is pushed, MySQL's.
    fn paced_as(&self) -> Dialect {
        self.dialect()
    }

    /// Rings when another server has taken over, where one can.
    fn moved(&self) -> Arc<Notify> {
        Arc::default()
    }

    /// When another server has taken over, if one has.
    fn moved_at(&self) -> Option<Instant> {
        None
    }

    /// The means to listen to pushes, where the database pushes.
    #[cfg(feature = "postgres")]
    fn pushes(&self) -> Option<&Pushes> {
        None
    }

    #[cfg(all(feature = "properties", feature = "sqlite"))]
    fn faults(&self) -> super::faults::Faults {
        super::faults::Faults::default()
    }
}

/// A request that may run twice, and how long it is sent again.
pub(crate) struct Call<'a> {
    /// Its name in errors.
    pub(crate) op: &'static str,
    pub(crate) rank: Rank,
    /// How long each sending waits for its answer.
    pub(crate) patience: Duration,
    /// Waits for a turn do not count.
    pub(crate) deadline: Instant,
    /// The attempt of a request that gives it an entry. When it is cancelled, it takes no further
    /// turn, and neither when the client is closed: `close` removes what the attempt may have left.
    pub(crate) caller: Option<&'a Attempt>,
}

/// The answer to a call.
pub(crate) struct Reply {
    /// When the answered request was sent.
    pub(crate) sent: Instant,
    pub(crate) rows: Rows,
    /// Whether an earlier sending without an answer may have taken effect.
    pub(crate) earlier: Effect,
}
