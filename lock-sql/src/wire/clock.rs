//! What time it is, and waiting until something is due.

use lock_core::{Clock, Instant};
use tokio::{sync::Notify, time::timeout};

/// The clock of all deadlines.
pub(crate) const CLOCK: Clock = Clock::Boot;

/// Waits until something is due, or something else is due earlier.
pub(crate) async fn until(due: Instant, earlier: &Notify) {
    if due == Instant::NEVER {
        return earlier.notified().await;
    }
    // A timer ends at a full millisecond: what is due already does not wait for one.
    let left = due.since(CLOCK.now());
    if !left.is_zero() {
        let _ = timeout(left, earlier.notified()).await;
    }
}
