//! The clock of a run.

use std::time::Duration;

use lock_core::{Clock, Instant};

/// The machine's boot clock, counted from the start of a trace.
#[derive(Clone, Copy, Debug)]
pub struct Time(Instant);

impl Time {
    /// Starts counting.
    pub fn start() -> Self {
        Self(Clock::Boot.now())
    }

    /// Nanoseconds since the start, as in traces.
    pub fn now(self) -> u64 {
        u64::try_from(self.since().as_nanos()).unwrap_or(u64::MAX)
    }

    /// The time since the start.
    pub fn since(self) -> Duration {
        Clock::Boot.now().since(self.0)
    }
}
