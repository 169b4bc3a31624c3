//! An acquire that its caller does not poll, as in a `select!` with another branch that takes long.
#![cfg(any(
    feature = "sqlite",
    feature = "etcd",
    feature = "redis",
    feature = "zookeeper",
    feature = "postgres",
    feature = "mysql"
))]

use std::{future::Future, pin::Pin, task::Poll, time::Duration};

use distlock::{Error, Lock, LockGuard, Locks, LossReason, Result};

use crate::support::{Store, connect, eventually};

/// The TTL of what nobody collects. It is handed on within three of them: on a loaded machine two
/// are left for a stall.
const TTL: Duration = Duration::from_secs(5);

fn lock(locks: &Locks) -> Lock {
    locks.lock("unpolled").unwrap()
}

/// The time in which a grant of [`TTL`] that nobody collects is handed on.
fn soon(locks: &Locks) -> Duration {
    TTL * 3 + locks.guarantees().expiry_slack
}

/// The shortest TTL of at least a second.
fn ttl(locks: &Locks) -> Duration {
    (*locks.guarantees().ttl.start()).max(Duration::from_secs(1))
}

/// An acquire that was polled once and is still pending. SQLite may grant a free lock in the first
/// poll, if the database answers before the poll ends.
async fn polled_once(lock: &Lock) -> Pin<Box<impl Future<Output = Result<LockGuard>> + use<>>> {
    loop {
        let mut acquire = Box::pin(lock.acquire());
        match std::future::poll_fn(|cx| Poll::Ready(acquire.as_mut().poll(cx))).await {
            Poll::Pending => return acquire,
            Poll::Ready(granted) => granted.unwrap().release().await.unwrap(),
        }
    }
}

async fn holders_and_waiters(locks: &Locks) -> (usize, usize) {
    let queue = locks.inspect("unpolled").await.unwrap();
    let holders = queue.iter().filter(|entry| entry.holds).count();
    (holders, queue.len() - holders)
}

/// Others get the lock a TTL after its grant, and the caller gets an error.
async fn is_given_back(others: &Locks, asleep: impl Future<Output = Result<LockGuard>>) {
    let other = lock(others).wait(soon(others)).acquire().await.unwrap();
    let late = asleep.await;
    let not_collected = LossReason::NotCollected;
    assert!(
        matches!(&late, Err(Error::Lost { reason, .. }) if *reason == not_collected),
        "{late:?}"
    );
    assert!(other.is_valid());
    other.release().await.unwrap();
}

async fn a_waiter_that_is_not_polled_gives_its_grant_back(store: &str) {
    let server = Store::open(store).await;
    let (a, b) = (connect(&server.url()).await, connect(&server.url()).await);
    let held = lock(&a).acquire().await.unwrap();
    let asleep = polled_once(&lock(&b).ttl(TTL)).await;
    eventually("it waits", async || holders_and_waiters(&a).await == (1, 1)).await;
    held.release().await.unwrap();
    is_given_back(&a, asleep).await;
}

async fn a_free_lock_whose_acquire_is_not_polled_is_given_back(store: &str) {
    let server = Store::open(store).await;
    let (a, b) = (connect(&server.url()).await, connect(&server.url()).await);
    let asleep = polled_once(&lock(&b).ttl(TTL)).await;
    eventually("it is granted", async || holders_and_waiters(&a).await == (1, 0)).await;
    is_given_back(&a, asleep).await;
}

async fn a_grant_is_renewed_until_it_is_collected(store: &str) {
    let server = Store::open(store).await;
    let (a, b) = (connect(&server.url()).await, connect(&server.url()).await);
    let held = lock(&a).acquire().await.unwrap();
    let token = held.token();
    let ttl = ttl(&b) * 3;
    let asleep = polled_once(&lock(&b).ttl(ttl)).await;
    eventually("it waits", async || holders_and_waiters(&a).await == (1, 1)).await;
    held.release().await.unwrap();
    eventually("it is granted", async || holders_and_waiters(&a).await == (1, 0)).await;
    tokio::time::sleep(ttl / 2).await;
    let guard = asleep.await.unwrap();
    assert!(guard.is_valid());
    assert!(guard.token() > token);
    // From now on it is an ordinary lock.
    tokio::time::sleep(ttl * 2).await;
    guard.release().await.unwrap();
}

async fn several_locks_that_are_not_collected_are_given_back(store: &str) {
    let server = Store::open(store).await;
    let (a, b) = (connect(&server.url()).await, connect(&server.url()).await);
    let held = a.lock("second").unwrap().acquire().await.unwrap();
    let set = b.all(["first", "second"]).unwrap().ttl(TTL);
    let mut asleep = Box::pin(set.acquire());
    let polled = std::future::poll_fn(|cx| Poll::Ready(asleep.as_mut().poll(cx))).await;
    assert!(polled.is_pending(), "{polled:?}");
    let waits = async || a.inspect("second").await.unwrap().len() == 2;
    eventually("it waits for the second one", waits).await;
    held.release().await.unwrap();
    for name in ["first", "second"] {
        let other = a.lock(name).unwrap().wait(soon(&a)).acquire().await.unwrap();
        other.release().await.unwrap();
    }
    let late = asleep.await;
    assert!(matches!(&late, Err(Error::Lost { .. })), "{late:?}");
}

on_every_store!(
    a_waiter_that_is_not_polled_gives_its_grant_back,
    a_free_lock_whose_acquire_is_not_polled_is_given_back,
    a_grant_is_renewed_until_it_is_collected,
    several_locks_that_are_not_collected_are_given_back,
);
