//! Bounds of time that count how late this machine runs its tasks.

use std::time::Duration;

use lock_core::Clock;

use super::beat::Beat;

/// Longest wait for work that does not end.
const PATIENCE: Duration = Duration::from_secs(60);
/// Number of tasks in a row that are late by so much: a piece of work has more, and most are earlier.
const TASKS: u32 = 2;

/// Fails unless the work takes less than this, besides the time by which tasks are late meanwhile.
pub async fn bounded<T>(what: &str, limit: Duration, work: impl Future<Output = T>) -> T {
    let (beat, start) = (Beat::start(), Clock::Boot.now());
    let done = tokio::time::timeout(PATIENCE, work).await;
    let (took, late) = (Clock::Boot.now().since(start), beat.late());
    let done = done.unwrap_or_else(|_| panic!("{what}: not within {took:?}"));
    assert!(took < limit + late * TASKS, "{what}: took {took:?}, tasks are late by {late:?}");
    done
}
