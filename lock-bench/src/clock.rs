//! The boot clock in nanoseconds: all processes of this machine share it.

use std::time::Duration;

use lock_core::{Clock, Instant};

pub(crate) const SECOND: u64 = 1_000_000_000;

pub(crate) fn now() -> u64 {
    nanos(Clock::Boot.now().since(Instant::default()))
}

pub(crate) fn nanos(duration: Duration) -> u64 {
    u64::try_from(duration.as_nanos()).unwrap_or(u64::MAX)
}

/// Waits until this time. Returns at once if it has passed.
pub(crate) async fn until(at: u64) {
    Clock::Boot.sleep_until(Instant::default() + Duration::from_nanos(at)).await;
}
