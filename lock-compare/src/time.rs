//! The clock of a run.

use std::time::Duration;

use lock_core::{Clock, Instant};

/// The machine's boot clock, counted from the start of a trace.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Time(Instant);

impl Time {
    pub(crate) fn start() -> Self {
        Self(Clock::Boot.now())
    }

    /// Nanoseconds since the start, as in traces.
    pub(crate) fn now(self) -> u64 {
        u64::try_from(self.since().as_nanos()).unwrap_or(u64::MAX)
    }

    pub(crate) fn since(self) -> Duration {
        Clock::Boot.now().since(self.0)
    }
}
