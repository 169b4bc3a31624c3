//! Closing a connection: its locks are free at once, its waiters get an error, and so do later
//! calls.
#![cfg(any(
    feature = "sqlite",
    feature = "etcd",
    feature = "redis",
    feature = "zookeeper",
    feature = "postgres",
    feature = "mysql"
))]

#[path = "close/events.rs"]
mod events;

use std::time::Duration;

use distlock::{Error, LossReason};

use crate::support::{Store, connect, eventually};

const TTL: Duration = Duration::from_secs(6);

on_every_store!(
    everything_is_given_back,
    held_locks_are_traced_as_released,
    locks_given_up_before_are_traced_as_released,
    a_drain_waits_for_dropped_guards,
    waiters_get_an_error,
    a_second_close_succeeds_and_later_calls_fail,
);

async fn everything_is_given_back(store: &str) {
    let server = Store::open(store).await;
    let (leaving, staying) = (connect(&server.url()).await, connect(&server.url()).await);
    let mut guards = Vec::new();
    for n in 0..20 {
        guards.push(leaving.lock(format!("held/{n}")).unwrap().ttl(TTL).acquire().await.unwrap());
    }
    let shared = leaving.semaphore("permits", 2).unwrap().ttl(TTL).acquire_many(2).await.unwrap();
    assert_eq!(staying.names("").await.unwrap().len(), 21);
    leaving.close().await.unwrap();
    for guard in &guards {
        assert!(!guard.is_valid());
        assert_eq!(guard.lost().await, LossReason::Closed);
    }
    assert!(!shared.is_valid());
    // The TTL is longer than the whole test, so it does not free them.
    let after = tokio::time::timeout(TTL / 2, async {
        for n in 0..20 {
            drop(staying.lock(format!("held/{n}")).unwrap().acquire().await.unwrap());
        }
        staying.semaphore("permits", 2).unwrap().acquire_many(2).await.unwrap()
    });
    after.await.expect("what was held is free").release().await.unwrap();
}

async fn held_locks_are_traced_as_released(store: &str) {
    let events = events::of_this_process();
    let server = Store::open(store).await;
    let locks = connect(&server.url()).await;
    let names = ["held", "shared", "permits"].map(|kind| format!("closed/{store}/{kind}"));
    let held = locks.lock(&names[0]).unwrap().ttl(TTL).acquire().await.unwrap();
    let shared = locks.shared(&names[1]).unwrap().ttl(TTL).acquire().await.unwrap();
    let permits = locks.semaphore(&names[2], 3).unwrap().ttl(TTL).acquire_many(2).await.unwrap();
    locks.close().await.unwrap();
    drop((held, shared, permits));
    for name in &names {
        assert_eq!(events.about(name), ["INFO granted", "INFO released"], "{name}");
    }
}

async fn locks_given_up_before_are_traced_as_released(store: &str) {
    let events = events::of_this_process();
    for n in 0..5 {
        let server = Store::open(store).await;
        let locks = connect(&server.url()).await;
        let names = ["dropped", "cut"].map(|how| format!("before/{store}/{how}/{n}"));
        let cut = locks.lock(&names[1]).unwrap().ttl(TTL).max_hold(Duration::from_millis(50));
        let cut = cut.acquire().await.unwrap();
        assert_eq!(cut.lost().await, LossReason::MaxHold);
        drop(locks.lock(&names[0]).unwrap().ttl(TTL).acquire().await.unwrap());
        locks.close().await.unwrap();
        let after = connect(&server.url()).await;
        for (name, expected) in names.iter().zip([
            &["INFO granted", "INFO released"][..],
            &["INFO granted", "WARN lost", "INFO released"],
        ]) {
            eventually("its end is told", async || events.about(name).len() == expected.len())
                .await;
            assert_eq!(events.about(name), expected, "{name}");
            assert!(after.lock(name).unwrap().try_acquire().await.unwrap().is_some(), "{name}");
        }
        drop(cut);
    }
}

async fn a_drain_waits_for_dropped_guards(store: &str) {
    let events = events::of_this_process();
    for n in 0..5 {
        let server = Store::open(store).await;
        let locks = connect(&server.url()).await;
        let name = format!("drained/{store}/{n}");
        drop(locks.lock(&name).unwrap().ttl(TTL).acquire().await.unwrap());
        assert_eq!(locks.drain(TTL).await.unwrap(), 0);
        assert_eq!(events.about(&name), ["INFO granted", "INFO released"], "{name}");
    }
}

async fn waiters_get_an_error(store: &str) {
    let server = Store::open(store).await;
    let (leaving, staying) = (connect(&server.url()).await, connect(&server.url()).await);
    let guard = staying.lock("busy").unwrap().acquire().await.unwrap();
    let waiter = tokio::spawn(leaving.lock("busy").unwrap().ttl(TTL).acquire());
    let queued = async || staying.inspect("busy").await.unwrap().len() == 2;
    eventually("it waits", queued).await;
    leaving.close().await.unwrap();
    let told = tokio::time::timeout(TTL / 2, waiter).await.expect("it is told").unwrap();
    assert!(matches!(told, Err(Error::Closed { .. })), "{told:?}");
    let left = async || staying.inspect("busy").await.unwrap().len() == 1;
    eventually("it has left the queue", left).await;
    guard.release().await.unwrap();
}

async fn a_second_close_succeeds_and_later_calls_fail(store: &str) {
    let server = Store::open(store).await;
    let locks = connect(&server.url()).await;
    let clone = locks.clone();
    locks.lock("a").unwrap().acquire().await.unwrap().release().await.unwrap();
    locks.close().await.unwrap();
    clone.close().await.unwrap();
    for late in [
        clone.lock("a").unwrap().acquire().await.map(drop),
        clone.lock("a").unwrap().try_acquire().await.map(drop),
        clone.shared("a").unwrap().acquire().await.map(drop),
        clone.all(["a", "b"]).unwrap().acquire().await.map(drop),
        clone.inspect("a").await.map(drop),
        clone.names("").await.map(drop),
        clone.revoke("a", uuid::Uuid::new_v4()).await.map(drop),
    ] {
        assert!(matches!(late, Err(Error::Closed { .. })), "{late:?}");
    }
}
