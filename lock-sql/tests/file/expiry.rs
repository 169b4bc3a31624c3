//! A waiter notices that the holder has died, though nothing in the file changes.

use std::time::Duration;

use lock_core::{Clock, Locks};

use crate::file::{driver, locks};

/// A whole number of seconds might be in step with the regular looks.
const TTL: Duration = Duration::from_millis(1100);
/// Allowance for a busy machine.
const LATE: Duration = Duration::from_millis(300);

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_dead_holder_is_replaced_in_time() {
    let directory = tempfile::tempdir().unwrap();
    let path = directory.path().join("locks.db");
    let dead = driver(&path).await.unwrap();
    let (faults, dead, there) = (dead.faults(), Locks::new(dead), locks(&path).await);
    let guard = dead.lock("a").unwrap().ttl(TTL).acquire().await.unwrap();
    let acquired = Clock::Boot.now();
    faults.crash();
    let next = there.lock("a").unwrap().acquire().await.unwrap();
    let slack = there.guarantees().expiry_slack;
    let waited = Clock::Boot.now().since(acquired);
    assert!(waited < TTL + slack + LATE, "waited for {waited:?}, with a slack of {slack:?}");
    next.release().await.unwrap();
    drop(guard);
}
