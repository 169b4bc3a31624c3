//! The pause before a request is repeated.

use std::{sync::Mutex, time::Duration};

use lock_core::{
    Clock, Instant,
    deadline::jitter,
    keep::{backoff::Backoff, poison::lock},
};
use zookeeper_client::Error as ZkError;

/// The usual pause, and the first one after a server has refused a request since it has too many.
const FIRST: Duration = Duration::from_millis(50);
/// The longest pause for such a server.
const LONGEST: Duration = Duration::from_secs(2);
/// A server that has refused nothing for so long is asked as at first.
const CALM: Duration = Duration::from_secs(10);

/// The pauses of a session, which grow while its server is throttled.
#[derive(Debug)]
pub(crate) struct Pauses(Mutex<State>);

#[derive(Debug)]
struct State {
    growing: Backoff,
    /// When the server refused a request last.
    refused: Instant,
    /// The present pause, and its end. Requests that are refused until then take the same one:
    /// those of one burst are one step.
    pause: Duration,
    until: Instant,
}

impl Pauses {
    pub(crate) fn new() -> Self {
        let growing = Backoff::new(FIRST, LONGEST);
        let (refused, until) = (Instant::default(), Instant::default());
        Self(Mutex::new(State { growing, refused, pause: FIRST, until }))
    }

    /// Returns the pause after this failure.
    pub(crate) fn after(&self, failure: &ZkError, now: Instant) -> Duration {
        if !matches!(failure, ZkError::Throttled) {
            return FIRST;
        }
        let mut state = lock(&self.0);
        if now.since(state.refused) >= CALM {
            state.growing = Backoff::new(FIRST, LONGEST);
        }
        state.refused = now;
        if now >= state.until {
            state.pause = state.growing.take();
            state.until = now + state.pause;
        }
        state.pause
    }

    /// Waits before a request is repeated.
    pub(crate) async fn wait(&self, failure: &ZkError) {
        Clock::Boot.sleep(jitter(self.after(failure, Clock::Boot.now()))).await;
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_throttled_server_is_asked_less_and_less_often() {
        let (pauses, begun) = (Pauses::new(), Clock::Boot.now());
        let mut now = begun;
        let mut throttled = |pauses: &Pauses| {
            let pause = pauses.after(&ZkError::Throttled, now);
            now = now + pause;
            pause.as_millis()
        };
        let growing: Vec<_> = (0..8).map(|_| throttled(&pauses)).collect();
        assert_eq!(growing, [50, 100, 200, 400, 800, 1600, 2000, 2000]);
        assert_eq!(pauses.after(&ZkError::ConnectionLoss, begun), FIRST);
        assert_eq!(throttled(&pauses), 2000, "other failures change nothing");
        let later = now + CALM;
        assert_eq!(pauses.after(&ZkError::Throttled, later), FIRST);
    }
}
