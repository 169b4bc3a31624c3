//! Two clients on one name, for the tests of clients that a program has made: each has the lock, waits
//! for it, and loses it.

use std::time::Duration;

use lock_core::{LockGuard, Locks, LossReason};

pub async fn acquire(locks: &Locks, name: &str) -> LockGuard {
    within(locks.lock(name).unwrap().acquire()).await.unwrap()
}

/// One holds and the other waits and is let in, then the other way round; then the holder loses it.
pub async fn contend(one: &Locks, other: &Locks) {
    let held = acquire(one, "orders").await;
    assert!(other.lock("orders").unwrap().try_acquire().await.unwrap().is_none());
    let next = pass_on(one, held, other).await;
    let held = pass_on(other, next, one).await;
    let (lost, entries) = (held.lost(), other.inspect("orders").await.unwrap());
    assert!(other.revoke("orders", entries[0].attempt.unwrap()).await.unwrap());
    held.renew().await.unwrap_err();
    assert_eq!(within(lost).await, LossReason::EntryGone);
    acquire(other, "orders").await.release().await.unwrap();
}

async fn pass_on(from: &Locks, held: LockGuard, to: &Locks) -> LockGuard {
    let waits = tokio::spawn(to.lock("orders").unwrap().acquire());
    let queued = async {
        while from.inspect("orders").await.unwrap().len() < 2 {
            tokio::time::sleep(Duration::from_millis(10)).await;
        }
    };
    within(queued).await;
    held.release().await.unwrap();
    within(waits).await.unwrap().unwrap()
}

async fn within<T>(future: impl Future<Output = T>) -> T {
    tokio::time::timeout(Duration::from_secs(60), future).await.expect("it takes too long")
}
