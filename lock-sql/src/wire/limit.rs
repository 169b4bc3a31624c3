//! The time limit of a script.

use std::{io, time::Duration};

use lock_core::{Clock, Instant, duration::shown};

/// Time limit for ending a connection properly. No server answers that.
pub(crate) const GOODBYE: Duration = Duration::from_millis(200);

/// One deadline for all waits of a script once it is its turn: for a connection, for the answer.
#[derive(Debug)]
pub(crate) struct Limit {
    pub(crate) whole: Duration,
    end: Instant,
}

impl Limit {
    /// A limit that begins now.
    pub(crate) fn new(whole: Duration) -> Self {
        Self { whole, end: Clock::Boot.now() + whole }
    }

    /// Whether less than a third of the time is left.
    pub(crate) fn is_short(&self) -> bool {
        self.end.since(Clock::Boot.now()) < self.whole / 3
    }

    /// Half of the time that is left.
    pub(crate) fn half(&self) -> Duration {
        self.end.since(Clock::Boot.now()) / 2
    }

    /// The same limit, but no more than `most` from now on.
    pub(crate) fn at_most(&self, most: Option<Duration>) -> Self {
        let most = Self::new(most.unwrap_or(self.whole));
        Self { whole: self.whole.min(most.whole), end: self.end.min(most.end) }
    }

    /// Waits for `work` as long as there is time.
    pub(crate) async fn within<T>(&self, work: impl Future<Output = T>) -> sqlx::Result<T> {
        let left = self.end.since(Clock::Boot.now());
        Clock::Boot.timeout(left, work).await.ok_or_else(|| over(self.whole))
    }
}

/// The error if no answer came within this time.
pub(crate) fn over(whole: Duration) -> sqlx::Error {
    let why = format!("no answer within {}", shown(whole));
    sqlx::Error::Io(io::Error::new(io::ErrorKind::TimedOut, why))
}

#[cfg(test)]
mod tests {
    use std::future::pending;

    use super::*;

    /// Tokio's clock stands still while the machine is suspended. Here it is ahead.
    #[tokio::test(start_paused = true)]
    async fn a_limit_counts_by_one_clock() {
        let limit = Limit::new(Duration::from_millis(100));
        limit.within(tokio::time::sleep(Duration::from_secs(3600))).await.unwrap();
        limit.within(pending::<()>()).await.unwrap_err();
        assert!(limit.is_short() && limit.half().is_zero());
    }
}
