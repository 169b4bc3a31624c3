//! How long a script may take, whatever it waits for.

use std::{io, time::Duration};

use lock_core::{Instant, duration::shown};
use tokio::time::timeout;

use crate::wire::clock::CLOCK;

/// One deadline for all that a script waits for once it is its turn: a connection, the answer.
#[derive(Debug)]
pub(crate) struct Limit {
    whole: Duration,
    end: Instant,
}

impl Limit {
    /// Begins now.
    pub(crate) fn new(whole: Duration) -> Self {
        Self { whole, end: CLOCK.now() + whole }
    }

    pub(crate) fn whole(&self) -> Duration {
        self.whole
    }

    /// Whether most of the time has gone.
    pub(crate) fn is_short(&self) -> bool {
        self.end.since(CLOCK.now()) < self.whole / 3
    }

    pub(crate) fn over(&self) -> sqlx::Error {
        over(self.whole)
    }

    /// Waits for something as long as there is time.
    ///
    /// # Errors
    ///
    /// That there is none any more.
    pub(crate) async fn keep<T>(&self, work: impl Future<Output = T>) -> sqlx::Result<T> {
        timeout(self.end.since(CLOCK.now()), work).await.map_err(|_| self.over())
    }
}

/// No answer within this time.
pub(crate) fn over(whole: Duration) -> sqlx::Error {
    let why = format!("no answer within {}", shown(whole));
    sqlx::Error::Io(io::Error::new(io::ErrorKind::TimedOut, why))
}
