//! How many requests shared locks and permits cost, counted by the server.

use std::cell::{Cell, RefCell};

use lock_core::{LockGuard, Locks, Result};
use lock_lab::{Counters, ZooKeeper};
use tokio::task::JoinHandle;

use crate::support::*;

const WAITERS: usize = 10;
/// Each client watches the token floor: the first holder, and the waiters.
const FLOORS: u64 = 1 + WAITERS as u64;

#[tokio::test]
async fn every_kind_costs_three_requests() {
    let server = calm_server().await;
    let locks = open_calm(&server).await;
    keep(&server, "/locks/three").await;
    let shared = || async {
        locks.shared("three").unwrap().acquire().await.unwrap().release().await.unwrap();
    };
    let permits = || async {
        let semaphore = locks.semaphore("three", 3).unwrap();
        semaphore.acquire_many(2).await.unwrap().release().await.unwrap();
    };
    assert_eq!(packets(&server, shared).await, 3);
    assert_eq!(packets(&server, permits).await, 3);
}

/// A reader that looks beside a writer reads whether the writer has become a reader.
#[tokio::test]
async fn a_try_beside_others_changes_nothing() {
    let server = calm_server().await;
    let locks = open_calm(&server).await;
    let guard = locks.lock("busy").unwrap().acquire().await.unwrap();
    let refused = || async {
        assert!(locks.shared("busy").unwrap().try_acquire().await.unwrap().is_none());
    };
    assert_eq!(packets(&server, refused).await, 2);
    let (used, ()) = cost(&server, refused()).await;
    assert_eq!(used.get("requests.update"), 0, "{used}");
    guard.release().await.unwrap();
}

/// Waits until the server has so many watches, and has told of so many changes since. Returns what
/// else it counted, and how often it was asked, which is counted, too.
async fn settled(
    server: &ZooKeeper,
    (watches, changes): (u64, u64),
    before: &Counters,
) -> (Counters, u64) {
    let (asked, seen) = (Cell::new(0), Cell::new(false));
    let last = RefCell::new(before.clone());
    eventually("all that are expected watch", || async {
        asked.set(asked.get() + 1);
        let now = server.counters().await.unwrap();
        let there = now.get("watches") == watches;
        let since = now.since(before);
        // Twice in turn: the server does not read all its counters at one moment.
        let there = there && since.get("fired.changed") == changes;
        last.replace(since);
        seen.replace(there) && there
    })
    .await;
    (last.into_inner(), asked.get())
}

async fn queue(locks: &Locks, name: &str, length: usize) {
    eventually("all stand in the queue", || async {
        locks.inspect(name).await.unwrap().len() == length
    })
    .await;
}

#[tokio::test]
async fn a_writers_release_lets_all_readers_in_without_a_request() {
    let server = calm_server().await;
    let here = open_calm(&server).await;
    let mut least = u64::MAX;
    for round in 0..5 {
        let name = format!("readers{round}");
        let guard = here.lock(&name).unwrap().acquire().await.unwrap();
        let mut readers: Vec<JoinHandle<Result<LockGuard>>> = Vec::new();
        let mut clients = Vec::new();
        for length in 2..WAITERS + 2 {
            let there = open_calm(&server).await;
            readers.push(tokio::spawn(there.shared(&name).unwrap().acquire()));
            queue(&here, &name, length).await;
            clients.push(there);
        }
        // The own nodes, the writer's by each reader, and the token floor by each client.
        let expected = 1 + 2 * WAITERS as u64 + FLOORS;
        settled(&server, (expected, 0), &server.counters().await.unwrap()).await;
        let (used, held) = cost(&server, async {
            guard.release().await.unwrap();
            let mut held = Vec::new();
            for reader in readers {
                held.push(soon("all readers hold", reader).await.unwrap().unwrap());
            }
            held
        })
        .await;
        // One event for each reader, and the writer's own.
        assert_eq!(used.get("fired.deleted"), 1 + WAITERS as u64, "{used}");
        // Without the release and the query of the counters.
        least = least.min(used.get("packets_received") - 2);
        drop(held);
        eventually("the watches are gone", || async {
            server.counters().await.unwrap().get("watches") == FLOORS
        })
        .await;
        for client in clients {
            client.close().await.unwrap();
        }
    }
    println!("a release before {WAITERS} readers causes {least} requests");
    assert_eq!(least, 0);
}

#[tokio::test]
async fn a_release_of_permits_wakes_one_waiter_and_makes_one_the_first() {
    let server = calm_server().await;
    let here = open_calm(&server).await;
    let semaphore = |locks: &Locks| locks.semaphore("permits", 3).unwrap();
    let mut held = Vec::new();
    for _ in 0..3 {
        held.push(semaphore(&here).acquire().await.unwrap());
    }
    let (mut clients, mut waiters) = (Vec::new(), Vec::new());
    for length in 4..WAITERS + 4 {
        let there = open_calm(&server).await;
        waiters.push(tokio::spawn(semaphore(&there).acquire()));
        queue(&here, "permits", length).await;
        clients.push(there);
    }
    // The own nodes, the directory by the first waiter, the node before by the others, and the
    // token floor by each client.
    let mut expected = 3 + 2 * WAITERS as u64 + FLOORS;
    settled(&server, (expected, 0), &server.counters().await.unwrap()).await;
    let mut least = u64::MAX;
    for waiter in waiters.drain(..WAITERS / 2) {
        let before = server.counters().await.unwrap();
        let released = held.remove(0);
        released.release().await.unwrap();
        held.push(soon("the first one holds", waiter).await.unwrap().unwrap());
        // One node less, and one waiter less.
        expected -= 2;
        // The next waiter is told of the change: it watches the node of the admitted one.
        let (used, asked) = settled(&server, (expected, 1), &before).await;
        // The own watch of the released node, and the first waiter's watch.
        assert_eq!((used.get("fired.deleted"), used.get("fired.children")), (1, 1), "{used}");
        assert_eq!(used.get("requests.update"), 2, "{used}");
        least = least.min(used.get("packets_received") - asked - 1);
    }
    println!("a release of permits before {WAITERS} waiters causes {least} requests");
    // The admitted waiter looks, and writes its admission; the next one reads that, and watches the
    // directory.
    assert_eq!(least, 4);
    for waiter in waiters {
        held.remove(0).release().await.unwrap();
        held.push(soon("each in turn", waiter).await.unwrap().unwrap());
    }
}
