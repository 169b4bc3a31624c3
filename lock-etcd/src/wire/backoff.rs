//! The pauses between tries.

use std::time::Duration;

use uuid::Uuid;

const LONGEST_PAUSE: Duration = Duration::from_millis(200);

/// The pauses between tries: 10 ms, doubled up to 200 ms, each between a half and the whole of
/// that.
pub(crate) struct Pause(Duration);

impl Pause {
    pub(crate) fn new() -> Self {
        Self(Duration::from_millis(10))
    }

    /// The longest pause, for what somebody else mends.
    pub(crate) fn longest() -> Self {
        Self(LONGEST_PAUSE)
    }

    /// Waits, and will wait longer next time.
    pub(crate) async fn wait(&mut self) {
        let half = self.0 / 2;
        // A UUID is the random number at hand.
        let dice = u32::from(Uuid::new_v4().as_bytes()[0]);
        tokio::time::sleep(half + half * dice / 255).await;
        self.0 = (self.0 * 2).min(LONGEST_PAUSE);
    }
}
