//! Lost replies: the attempt's id tells what has happened.

use std::{path::Path, time::Duration};

use lock_core::Locks;
use lock_sql::Faults;

use crate::file::{driver, eventually, locks};

const TTL: Duration = Duration::from_secs(6);
/// A request waits a third of a TTL for its answer.
const PATIENCE: Duration = Duration::from_secs(2);

/// A client whose replies can be held back, and one that sees what is there.
async fn far_and_near(path: &Path) -> (Locks, Faults, Locks) {
    let far = driver(path).await.unwrap();
    let faults = far.faults();
    (Locks::new(far), faults, locks(path).await)
}

/// Time until the first entry of the queue expires.
async fn left(near: &Locks) -> Option<Duration> {
    near.inspect("a").await.unwrap().first().and_then(|entry| entry.ttl_left)
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_repeated_request_finds_what_the_first_one_did() {
    let directory = tempfile::tempdir().unwrap();
    let (far, faults, near) = far_and_near(&directory.path().join("locks.db")).await;
    let lock = far.lock("a").unwrap().ttl(TTL);
    faults.cut_replies();
    let acquire = tokio::spawn(lock.acquire());
    // By then the first request was given up, and the second one has found its entry.
    let late = TTL - PATIENCE - PATIENCE / 2;
    let mut shortest = TTL;
    eventually("an entry that was entered twice", async || {
        shortest = left(&near).await.unwrap_or(shortest);
        shortest < late
    })
    .await;
    faults.heal();
    let guard = acquire.await.unwrap().unwrap();
    assert!(guard.remaining() <= shortest, "{:?} of {shortest:?}", guard.remaining());
    assert_eq!(near.inspect("a").await.unwrap().len(), 1, "one attempt has two entries");
    let token = guard.token().value();
    faults.cut_replies();
    let release = tokio::spawn(guard.release());
    eventually("no entry", async || left(&near).await.is_none()).await;
    faults.heal();
    release.await.unwrap().unwrap();
    let next = near.lock("a").unwrap().acquire().await.unwrap();
    assert!(next.token().value() >= token + 2, "the request was not sent again");
    next.release().await.unwrap();
}
