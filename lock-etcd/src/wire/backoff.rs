//! The pauses between tries.

use std::time::Duration;

use lock_core::keep::backoff::Backoff;

const LONGEST: Duration = Duration::from_millis(200);

/// The pauses between tries: from 10 to 200 ms.
pub(crate) struct Pause(Backoff);

impl Pause {
    pub(crate) fn new() -> Self {
        Self(Backoff::new(Duration::from_millis(10), LONGEST))
    }

    /// The longest pause, for what somebody else mends.
    pub(crate) fn longest() -> Self {
        Self(Backoff::new(LONGEST, LONGEST))
    }

    /// Waits, and will wait longer next time.
    pub(crate) async fn wait(&mut self) {
        self.0.wait().await;
    }
}
