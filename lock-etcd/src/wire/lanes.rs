//! How many requests a client has under way at a time, and which go first.
//!
//! etcd confirms a keep-alive only after it has applied everything that was committed before. A
//! client that sends thousands of acquires at once thereby delays its own keep-alives past the TTL.
//! So the number of requests under way is bounded, and a burst waits in this process, in order.
//! Acquires, tries and looks need room in their lane first, and all lanes together have less room
//! than there is for requests: a release or a revoke never waits for an acquire. Keep-alives and
//! watches have streams of their own and wait for nothing here.

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
pub(crate) struct Lanes {
    requests: Semaphore,
    acquires: Semaphore,
    tries: Semaphore,
    looks: Semaphore,
}

/// The right to have a request, an acquire, a try or a look under way, until it is dropped.
pub(crate) type Room<'a> = SemaphorePermit<'a>;

impl Lanes {
    pub(crate) fn new() -> Self {
        Self {
            requests: Semaphore::new(REQUESTS),
            acquires: Semaphore::new(ACQUIRES),
            tries: Semaphore::new(TRIES),
            looks: Semaphore::new(LOOKS),
        }
    }

    /// Returns the right to send a request now, if there is room for it.
    pub(crate) fn try_request(&self) -> Option<Room<'_>> {
        self.requests.try_acquire().ok()
    }

    /// Waits for room for a request.
    pub(crate) async fn request(&self) -> Option<Room<'_>> {
        match self.try_request() {
            // The bounds are never closed.
            None => Box::pin(self.requests.acquire()).await.ok(),
            room => room,
        }
    }

    /// Waits for room for a look.
    pub(crate) async fn look(&self) -> Option<Room<'_>> {
        self.looks.acquire().await.ok()
    }

    /// Waits for room for an acquire, or for a `try` to acquire.
    /// Fails if the caller has left, or has waited until the time that `until` returns. `until` is
    /// called again when that time comes.
    pub(crate) async fn acquire(
        &self,
        wait: Wait,
        attempt: &Attempt,
        until: impl Fn() -> Instant,
    ) -> Result<Option<Room<'_>>, Failure> {
        let lane = match wait {
            Wait::Try => &self.tries,
            _ => &self.acquires,
        };
        match lane.try_acquire() {
            Ok(room) => Ok(Some(room)),
            Err(_) => Box::pin(wait_for(lane, attempt, until)).await,
        }
    }
}

async fn wait_for<'a>(
    lane: &'a Semaphore,
    attempt: &Attempt,
    until: impl Fn() -> Instant,
) -> Result<Option<Room<'a>>, Failure> {
    let mut room = std::pin::pin!(lane.acquire());
    loop {
        let until = until();
        if Clock::Boot.now() >= until {
            return Err(unsent("the store was out of reach before there was room for its request"));
        }
        tokio::select! {
            biased;
            () = attempt.cancelled() => return Err(unsent("the caller has left")),
            room = &mut room => return Ok(room.ok()),
            () = Clock::Boot.sleep_until(until) => {}
        }
    }
}

/// The failure of a request that was not sent.
pub(crate) fn unsent(why: &'static str) -> Failure {
    Failure::new(FailureKind::Refused, why)
}
