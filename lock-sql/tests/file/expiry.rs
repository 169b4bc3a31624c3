//! A waiter notices that the holder has died, though nothing in the file changes.

use std::time::Duration;

use lock_core::{Clock, Locks};

use crate::file::{driver, locks};

/// A whole number of seconds might be in step with the regular looks.
const TTL: Duration = Duration::from_millis(1100);
/// Allowance for the time that requests take.
const LATE: Duration = Duration::from_millis(300);

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_dead_holder_is_replaced_in_time() {
    let directory = tempfile::tempdir().unwrap();
    let path = directory.path().join("locks.db");
    let dead = driver(&path).await.unwrap();
    let (faults, dead, there) = (dead.faults(), Locks::new(dead), locks(&path).await);
    let other = locks(&path).await;
    let slack = there.guarantees().expiry_slack;
    let guard = dead.lock("a").unwrap().ttl(TTL).acquire().await.unwrap();
    let acquired = Clock::Boot.now();
    faults.crash();
    let next = tokio::spawn(there.lock("a").unwrap().acquire());
    // On a busy machine, this one who knows the time is late as well.
    let knows = tokio::spawn(async move {
        tokio::time::sleep(TTL + slack).await;
        other.lock("free").unwrap().acquire().await.unwrap().release().await.unwrap();
        Clock::Boot.now().since(acquired)
    });
    let next = next.await.unwrap().unwrap();
    let waited = Clock::Boot.now().since(acquired);
    let limit = knows.await.unwrap() + LATE;
    assert!(waited < limit, "waited for {waited:?}, with a slack of {slack:?}, not {limit:?}");
    next.release().await.unwrap();
    drop(guard);
}
