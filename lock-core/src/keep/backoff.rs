//! Pauses that grow.

use std::time::Duration;

use crate::deadline::jitter;

/// The pauses between tries: each is twice as long as the one before, up to the longest.
#[derive(Clone, Copy, Debug)]
pub struct Backoff {
    next: Duration,
    longest: Duration,
}

impl Backoff {
    /// Begins with this pause.
    pub const fn new(first: Duration, longest: Duration) -> Self {
        Self { next: first, longest }
    }

    /// The next pause, without jitter. The one after it is longer.
    pub fn take(&mut self) -> Duration {
        let pause = self.next;
        self.next = (pause * 2).min(self.longest);
        pause
    }

    /// Sleeps for between half and all of the next pause. The one after it is longer. A pause that
    /// is dropped counts as taken.
    pub async fn wait(&mut self) {
        tokio::time::sleep(jitter(self.take())).await;
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const FIRST: Duration = Duration::from_millis(10);
    const LONGEST: Duration = Duration::from_millis(50);

    #[test]
    fn pauses_double_up_to_the_longest() {
        let mut backoff = Backoff::new(FIRST, LONGEST);
        let taken: Vec<_> = (0..5).map(|_| backoff.take().as_millis()).collect();
        assert_eq!(taken, [10, 20, 40, 50, 50]);
    }

    #[tokio::test(start_paused = true)]
    async fn a_wait_lasts_from_half_to_all_of_its_pause() {
        let mut backoff = Backoff::new(FIRST, LONGEST);
        for pause in [FIRST, FIRST * 2, FIRST * 4, LONGEST] {
            let start = crate::Clock::Tokio.now();
            backoff.wait().await;
            let waited = crate::Clock::Tokio.now().since(start);
            // Timers end at a full millisecond.
            assert!(waited >= pause / 2, "{waited:?} of {pause:?}");
            assert!(waited <= pause + Duration::from_millis(1), "{waited:?} of {pause:?}");
        }
    }
}
