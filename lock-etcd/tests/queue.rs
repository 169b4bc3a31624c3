//! The queue: order, wake-ups and their costs.

use std::sync::{Arc, Mutex};

use lock_core::Locks;
use tokio::task::JoinHandle;

use crate::support::*;

/// Waits in the queue behind `entries - 1` others. Writes its number down when it holds, then
/// releases. The task returns whether it held the lock.
async fn waiter(
    locks: &Locks,
    entries: usize,
    number: usize,
    order: &Arc<Mutex<Vec<usize>>>,
) -> JoinHandle<bool> {
    let (lock, order) = (locks.lock("job").unwrap(), order.clone());
    let waiting = tokio::spawn(async move {
        let Ok(guard) = lock.acquire().await else { return false };
        order.lock().unwrap().push(number);
        guard.release().await.unwrap();
        true
    });
    until_queued(locks, "job", entries).await;
    waiting
}

#[tokio::test]
async fn waiters_of_several_clients_are_served_in_order() {
    let etcd = etcd().await;
    let clients = [locks(&etcd.url()).await, locks(&etcd.url()).await, locks(&etcd.url()).await];
    let order = Arc::new(Mutex::new(Vec::new()));
    let guard = clients[0].lock("job").unwrap().acquire().await.unwrap();
    let mut waiting = Vec::new();
    for number in 0..12 {
        // Neighbours of one client hand over without etcd's help, others with it.
        let client = &clients[number / 2 % 3];
        waiting.push(waiter(client, number + 2, number, &order).await);
    }
    guard.release().await.unwrap();
    for waiting in waiting {
        assert!(soon(waiting).await.unwrap());
    }
    assert_eq!(*order.lock().unwrap(), (0..12).collect::<Vec<_>>());
    until_clean(&etcd).await;
}

#[tokio::test]
async fn waiters_leave_and_die_in_the_middle() {
    let etcd = etcd().await;
    let locks = locks(&etcd.url()).await;
    let (doomed, proxy) = behind_proxy(&etcd, "?ttl=2s").await;
    let order = Arc::new(Mutex::new(Vec::new()));
    let guard = locks.lock("job").unwrap().acquire().await.unwrap();
    let first = waiter(&locks, 2, 1, &order).await;
    let leaving = waiter(&locks, 3, 2, &order).await;
    let third = waiter(&locks, 4, 3, &order).await;
    let dying = waiter(&doomed, 5, 4, &order).await;
    let fifth = waiter(&locks, 6, 5, &order).await;
    leaving.abort();
    until_queued(&locks, "job", 5).await;
    proxy.refuse();
    guard.release().await.unwrap();
    for waiting in [first, third, fifth] {
        assert!(soon(waiting).await.unwrap());
    }
    assert_eq!(*order.lock().unwrap(), [1, 3, 5]);
    assert!(!soon(dying).await.unwrap(), "it is told that its session ended");
    until_clean(&etcd).await;
}

#[tokio::test]
async fn a_release_wakes_one_and_asks_nothing() {
    for waiters in [2, 10, 100] {
        let etcd = etcd().await;
        let (holder, ours) = (locks(&etcd.url()).await, locks(&etcd.url()).await);
        let guard = holder.lock("job").unwrap().acquire().await.unwrap();
        let (woken, mut wake) = tokio::sync::mpsc::unbounded_channel();
        for _ in 0..waiters {
            let (lock, woken) = (ours.lock("job").unwrap(), woken.clone());
            tokio::spawn(async move { woken.send(lock.acquire().await) });
        }
        until_queued(&ours, "job", waiters + 1).await;
        until_quiet(&etcd).await;
        let before = etcd.counters().await.unwrap();
        guard.release().await.unwrap();
        let next = soon(wake.recv()).await.unwrap().unwrap();
        until_quiet(&etcd).await;
        let now = etcd.counters().await.unwrap();
        assert_eq!(requests(&now, &before), [("Txn".to_owned(), 1)]);
        // One event for the client that waits; the holder did not watch, or gets one, too.
        assert!(events(&now, &before) <= 2, "{}", now.since(&before));
        assert!(wake.try_recv().is_err(), "only one is woken");
        drop(next);
    }
}

#[tokio::test]
async fn a_contended_lock_costs_two_requests_and_one_event() {
    let etcd = etcd().await;
    let locks = locks(&etcd.url()).await;
    let run = |rounds: usize| {
        let lock = locks.lock("job").unwrap();
        (0..8).map(move |_| {
            let lock = lock.clone();
            tokio::spawn(async move {
                for _ in 0..rounds {
                    lock.acquire().await.unwrap().release().await.unwrap();
                }
            })
        })
    };
    // The watch begins. It stays a while after the last waiter has left.
    for task in run(20).collect::<Vec<_>>() {
        soon(task).await.unwrap();
    }
    until_quiet(&etcd).await;
    let events = costs(&etcd, 800, async || {
        for task in run(50).collect::<Vec<_>>() {
            soon(task).await.unwrap();
        }
    })
    .await;
    assert!(events <= 400, "{events}");
}

#[tokio::test]
async fn a_name_that_has_cooled_down_is_not_watched() {
    let etcd = etcd().await;
    let locks = locks(&etcd.url()).await;
    let guard = locks.lock("job").unwrap().acquire().await.unwrap();
    let waiting = tokio::spawn(locks.lock("job").unwrap().acquire());
    until_queued(&locks, "job", 2).await;
    until("it is watched", || async { etcd.counters().await.unwrap().get("watchers") == 1 }).await;
    guard.release().await.unwrap();
    soon(waiting).await.unwrap().unwrap().release().await.unwrap();
    until("it is not watched", || async { etcd.counters().await.unwrap().get("watchers") == 0 })
        .await;
}
