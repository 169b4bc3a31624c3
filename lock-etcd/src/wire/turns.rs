//! How many requests a client has under way at a time, and which go first.
//!
//! etcd confirms a keep-alive only after it has applied everything that was committed before. A
//! client that sends thousands of acquires at once thereby delays its own keep-alives past the TTL.
//! So the number of requests under way is bounded, and a burst waits in this process, in order.
//! Acquires, tries and looks take a turn first, and there are fewer turns than requests under way:
//! a release or a revoke never waits for an acquire. Keep-alives and watches have streams of their
//! own and wait for nothing here.

use lock_core::{Attempt, Clock, Instant, Wait};
use tokio::sync::{Semaphore, SemaphorePermit};

use crate::error::{Failure, FailureKind};

/// How many requests may be under way: enough for the best throughput of etcd, and few enough that
/// a slow etcd finishes them long before the shortest TTL is over.
const REQUESTS: usize = 64;

/// How many of them may be acquires.
const ACQUIRES: usize = 32;

/// How many of them may be tries, which do not queue behind acquires that may wait.
const TRIES: usize = 8;

/// How many of them may be looks: operators' requests, and the reasons for failed waits.
const LOOKS: usize = 8;

/// The bounds, and the room that is left.
#[derive(Debug)]
pub(crate) struct Turns {
    requests: Semaphore,
    acquires: Semaphore,
    tries: Semaphore,
    looks: Semaphore,
}

/// The right to have a request, an acquire, a try or a look under way, until it is dropped.
pub(crate) type Turn<'a> = SemaphorePermit<'a>;

impl Turns {
    pub(crate) fn new() -> Self {
        Self {
            requests: Semaphore::new(REQUESTS),
            acquires: Semaphore::new(ACQUIRES),
            tries: Semaphore::new(TRIES),
            looks: Semaphore::new(LOOKS),
        }
    }

    /// Returns the right to send a request now, if there is room for it.
    pub(crate) fn try_request(&self) -> Option<Turn<'_>> {
        self.requests.try_acquire().ok()
    }

    /// Waits for room for a request.
    pub(crate) async fn request(&self) -> Option<Turn<'_>> {
        match self.try_request() {
            // The bounds are never closed.
            None => Box::pin(self.requests.acquire()).await.ok(),
            room => room,
        }
    }

    /// Waits for the turn of a look.
    pub(crate) async fn look(&self) -> Option<Turn<'_>> {
        self.looks.acquire().await.ok()
    }

    /// Waits for the turn of an acquire, or of a `try` to acquire.
    /// Fails if the caller has left, or has waited until the time that `until` returns. `until` is
    /// called again when that time comes.
    pub(crate) async fn acquire(
        &self,
        wait: Wait,
        attempt: &Attempt,
        until: impl Fn() -> Instant,
    ) -> Result<Option<Turn<'_>>, Failure> {
        let turns = match wait {
            Wait::Try => &self.tries,
            _ => &self.acquires,
        };
        match turns.try_acquire() {
            Ok(turn) => Ok(Some(turn)),
            Err(_) => Box::pin(wait_for(turns, attempt, until)).await,
        }
    }
}

async fn wait_for<'a>(
    turns: &'a Semaphore,
    attempt: &Attempt,
    until: impl Fn() -> Instant,
) -> Result<Option<Turn<'a>>, Failure> {
    let mut turn = std::pin::pin!(turns.acquire());
    loop {
        let until = until();
        if Clock::Boot.now() >= until {
            return Err(unsent("the store was out of reach before its turn came"));
        }
        tokio::select! {
            biased;
            () = attempt.cancelled() => return Err(unsent("the caller has left")),
            turn = &mut turn => return Ok(turn.ok()),
            () = Clock::Boot.sleep_until(until) => {}
        }
    }
}

/// The failure of a request that was not sent.
pub(crate) fn unsent(why: &'static str) -> Failure {
    Failure::new(FailureKind::Refused, why)
}
