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

mod events;

use std::time::Duration;

use distlock::{Error, LossReason};

use self::events::Events;
use crate::support::{Store, connect, eventually};

/// Longer than each test, so that it frees nothing.
const TTL: Duration = Duration::from_secs(40);

on_every_store!(
    everything_is_given_back,
    each_end_is_traced,
    waiters_get_an_error,
    a_waiter_is_told_when_it_has_left,
    a_second_close_succeeds_and_later_calls_fail,
);

async fn everything_is_given_back(store: &str) {
    let server = Store::open_patient(store).await;
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
    let after = tokio::time::timeout(TTL / 2, async {
        for n in 0..20 {
            drop(staying.lock(format!("held/{n}")).unwrap().acquire().await.unwrap());
        }
        staying.semaphore("permits", 2).unwrap().acquire_many(2).await.unwrap()
    });
    after.await.expect("what was held is free").release().await.unwrap();
}

/// In a process of its own: drivers trace from any thread.
async fn each_end_is_traced(store: &str) {
    if !lock_lab::in_own_process(&format!("close::{store}::each_end_is_traced")) {
        return;
    }
    let events = Events::of_this_process();
    let server = Store::open_patient(store).await;
    held_locks_are_traced_as_released(&server.url(), &events).await;
    locks_given_up_before_are_traced_as_released(&server.url(), &events).await;
    a_drain_waits_for_dropped_guards(&server.url(), &events).await;
}

async fn held_locks_are_traced_as_released(url: &str, events: &Events) {
    let locks = connect(url).await;
    let names = ["held", "shared", "permits"].map(|kind| format!("closed/{kind}"));
    let held = locks.lock(&names[0]).unwrap().ttl(TTL).acquire().await.unwrap();
    let shared = locks.shared(&names[1]).unwrap().ttl(TTL).acquire().await.unwrap();
    let permits = locks.semaphore(&names[2], 3).unwrap().ttl(TTL).acquire_many(2).await.unwrap();
    locks.close().await.unwrap();
    drop((held, shared, permits));
    for name in &names {
        assert_eq!(events.about(name), ["INFO granted", "INFO released"], "{name}");
    }
}

async fn locks_given_up_before_are_traced_as_released(url: &str, events: &Events) {
    for n in 0..5 {
        let locks = connect(url).await;
        let names = ["dropped", "cut"].map(|how| format!("before/{how}/{n}"));
        let cut = locks.lock(&names[1]).unwrap().ttl(TTL).max_hold(Duration::from_millis(50));
        let cut = cut.acquire().await;
        match &cut {
            Ok(cut) => assert_eq!(cut.lost().await, LossReason::MaxHold),
            // On a busy machine, before its caller has it.
            Err(Error::Lost { reason: LossReason::MaxHold, .. }) => {}
            Err(error) => panic!("{error}"),
        }
        drop(locks.lock(&names[0]).unwrap().ttl(TTL).acquire().await.unwrap());
        locks.close().await.unwrap();
        let after = connect(url).await;
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

async fn a_drain_waits_for_dropped_guards(url: &str, events: &Events) {
    for n in 0..5 {
        let locks = connect(url).await;
        let name = format!("drained/{n}");
        drop(locks.lock(&name).unwrap().ttl(TTL).acquire().await.unwrap());
        assert_eq!(locks.drain(TTL).await.unwrap(), 0);
        assert_eq!(events.about(&name), ["INFO granted", "INFO released"], "{name}");
    }
}

async fn waiters_get_an_error(store: &str) {
    let server = Store::open_patient(store).await;
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

/// A program may end as soon as its waiter returns: nothing of it may be granted the lock later.
async fn a_waiter_is_told_when_it_has_left(store: &str) {
    let server = Store::open_patient(store).await;
    let staying = connect(&server.url()).await;
    let guard = staying.lock("busy").unwrap().acquire().await.unwrap();
    for drains in [false, true] {
        for _ in 0..5 {
            let leaving = connect(&server.url()).await;
            let other = leaving.lock("other").unwrap().ttl(TTL).acquire().await.unwrap();
            let waiter = tokio::spawn(leaving.lock("busy").unwrap().ttl(TTL).acquire());
            let queued = async || staying.inspect("busy").await.unwrap().len() == 2;
            eventually("it waits", queued).await;
            let ending = leaving.clone();
            let end = tokio::spawn(async move {
                match drains {
                    true => ending.drain(TTL).await.map(drop),
                    false => ending.close().await,
                }
            });
            let told = waiter.await.unwrap();
            let left = staying.inspect("busy").await.unwrap();
            assert!(matches!(told, Err(Error::Closed { .. })), "drains: {drains}: {told:?}");
            assert_eq!(left.len(), 1, "drains: {drains}: it is still there: {left:?}");
            // The drain waits for this one.
            assert_eq!(other.is_valid(), drains);
            drop(other);
            end.await.unwrap().unwrap();
        }
    }
    guard.release().await.unwrap();
}

async fn a_second_close_succeeds_and_later_calls_fail(store: &str) {
    let server = Store::open_patient(store).await;
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
