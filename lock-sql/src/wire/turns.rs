//! When a script is sent, and how long it may take. Renewals do not wait for acquires.

use std::{
    io,
    sync::{Arc, Mutex},
    time::Duration,
};

use lock_core::{Clock, Instant, Reach, duration::shown, keep::poison::lock};
use tokio::sync::{AcquireError, OwnedSemaphorePermit, Semaphore};

use crate::wire::failure::Failure;

/// Most scripts of a client on their way to a server: see [`Turns::new`]. Acquires leave two free,
/// and one of these is for renewals only.
#[cfg(any(feature = "mysql", feature = "postgres"))]
pub(crate) const SEATS: [usize; 3] = [10, 9, 8];

/// The purpose of a script. The first ones go before the others.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub(crate) enum Rank {
    /// Keeps locks and places in queues.
    Renew,
    /// Lets others in: releases, revokes, changes of held locks, looks of waiters.
    HandOver,
    /// Everything else: acquires, and operators' requests.
    Ask,
}

/// The scripts of one database that may be on their way at once. The others wait in this process.
/// Scripts of one rank wait in order of arrival.
///
/// A script passes one gate after the other, from that of its rank to the first. No gate has more
/// seats than the next one. So a script waits for scripts of its own rank, and for the scripts of
/// lower ranks that have passed their gates, however many more of them wait.
#[derive(Debug)]
pub(crate) struct Turns {
    gates: [Arc<Semaphore>; 3],
    /// When the database last answered a script.
    answered: Mutex<Instant>,
    pub(crate) reach: Reach,
}

/// The right of a script to be on its way, until this is dropped.
#[derive(Debug)]
pub(crate) struct Turn {
    pub(crate) rank: Rank,
    _passed: Vec<OwnedSemaphorePermit>,
}

impl Turns {
    /// `seats`: how many scripts may be on their way at once: of all ranks; of the rank
    /// [`HandOver`](Rank::HandOver) and below; of the rank [`Ask`](Rank::Ask).
    pub(crate) fn new(seats: [usize; 3]) -> Self {
        let gates = seats.map(|seats| Arc::new(Semaphore::new(seats)));
        Self { gates, answered: Mutex::default(), reach: Reach::default() }
    }

    /// Waits for a turn as long as the database answers other scripts: only a silence of `patience`
    /// ends the wait.
    pub(crate) async fn take(&self, rank: Rank, patience: Duration) -> Result<Turn, Failure> {
        let pass = async {
            let mut passed = Vec::with_capacity(self.gates.len());
            // From the gate of the rank to the first.
            for gate in self.gates[..=rank as usize].iter().rev() {
                passed.push(gate.clone().acquire_owned().await?);
            }
            Ok(Turn { rank, _passed: passed })
        };
        let passed = self.while_answered(patience, pass).await?;
        passed.map_err(|_: AcquireError| Failure::Closed)
    }

    /// Waits for an effect of the answers to other scripts, as long as there are such answers.
    pub(crate) async fn while_answered<T>(
        &self,
        patience: Duration,
        wait: impl Future<Output = T>,
    ) -> Result<T, Failure> {
        tokio::pin!(wait);
        let start = Clock::Boot.now();
        loop {
            let end = self.answered().max(start) + patience;
            let left = end.since(Clock::Boot.now());
            if let Some(done) = Clock::Boot.timeout(left, &mut wait).await {
                return Ok(done);
            }
            if self.answered() + patience <= Clock::Boot.now() {
                return Err(Failure::Down(over(patience)));
            }
        }
    }

    fn answered(&self) -> Instant {
        *lock(&self.answered)
    }

    /// Notes that the database has answered a script.
    pub(crate) fn note_answer(&self) {
        *lock(&self.answered) = Clock::Boot.now();
        self.reach.works();
    }

    /// Ends all waits for a turn, and gives no more turns.
    #[cfg(any(feature = "mysql", feature = "postgres"))]
    pub(crate) fn close(&self) {
        self.gates.iter().for_each(|gate| gate.close());
    }
}

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

    const PATIENCE: Duration = Duration::from_secs(10);

    async fn is_pending<T>(wait: &mut (impl Future<Output = T> + Unpin)) -> bool {
        std::future::poll_fn(|cx| {
            std::task::Poll::Ready(std::pin::Pin::new(&mut *wait).poll(cx).is_pending())
        })
        .await
    }

    #[tokio::test]
    async fn a_renewal_passes_all_that_ask() {
        let turns = Turns::new([2, 2, 1]);
        let first = turns.take(Rank::Ask, PATIENCE).await.unwrap();
        let mut second = Box::pin(turns.take(Rank::Ask, PATIENCE));
        assert!(is_pending(&mut second).await);
        let renewal = turns.take(Rank::Renew, PATIENCE).await.unwrap();
        assert!(is_pending(&mut second).await);
        drop((first, renewal));
        second.await.unwrap();
    }

    #[tokio::test]
    async fn with_one_place_a_renewal_waits_for_two_scripts_at_most() {
        let turns = Turns::new([1, 1, 1]);
        let running = turns.take(Rank::Ask, PATIENCE).await.unwrap();
        let mut asking = Box::pin(turns.take(Rank::Ask, PATIENCE));
        let mut leaving = Box::pin(turns.take(Rank::HandOver, PATIENCE));
        let mut renewal = Box::pin(turns.take(Rank::Renew, PATIENCE));
        assert!(is_pending(&mut asking).await && is_pending(&mut leaving).await);
        assert!(is_pending(&mut renewal).await);
        drop(running);
        drop(renewal.await.unwrap());
        drop(leaving.await.unwrap());
        drop(asking.await.unwrap());
    }

    #[tokio::test]
    async fn a_script_that_leaves_the_line_delays_no_other() {
        let turns = Turns::new([1, 1, 1]);
        let running = turns.take(Rank::Ask, PATIENCE).await.unwrap();
        let mut leaver = Box::pin(turns.take(Rank::Ask, PATIENCE));
        let mut next = Box::pin(turns.take(Rank::Ask, PATIENCE));
        assert!(is_pending(&mut leaver).await && is_pending(&mut next).await);
        drop(leaver);
        drop(running);
        next.await.unwrap();
    }

    #[tokio::test]
    async fn only_silence_ends_a_wait() {
        let (turns, patience) = (Turns::new([1, 1, 1]), Duration::from_millis(100));
        let running = turns.take(Rank::Ask, PATIENCE).await.unwrap();
        let start = Clock::Boot.now();
        let answers = async {
            while Clock::Boot.now().since(start) < patience * 3 {
                turns.note_answer();
                tokio::time::sleep(patience / 10).await;
            }
        };
        let (refused, ()) = tokio::join!(turns.take(Rank::Ask, patience), answers);
        assert!(matches!(refused, Err(Failure::Down(_))));
        assert!(Clock::Boot.now().since(start) >= patience * 3);
        drop(running);
    }

    /// Tokio's clock stands still while the machine is suspended. Here it is ahead.
    #[tokio::test(start_paused = true)]
    async fn a_limit_counts_by_one_clock() {
        let limit = Limit::new(Duration::from_millis(100));
        limit.within(tokio::time::sleep(Duration::from_secs(3600))).await.unwrap();
        limit.within(pending::<()>()).await.unwrap_err();
        assert!(limit.is_short() && limit.half().is_zero());
    }
}
