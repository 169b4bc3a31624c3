//! How many requests each operation costs, counted by the server.

use std::time::Duration;

use lock_core::{Clock, LockName, Locks};
use lock_lab::ZooKeeper;

use crate::support::{undisturbed::undisturbed, *};

#[tokio::test]
async fn an_uncontended_acquire_and_release_are_three_requests() {
    let server = server().await;
    let locks = open(&server.url()).await;
    keep(&server, "/locks/three").await;
    let lock = locks.lock("three").unwrap();
    let pair = || async { lock.acquire().await.unwrap().release().await.unwrap() };
    assert_eq!(packets(&server, pair).await, 3);
    let (used, ()) = cost(&server, pair()).await;
    assert_eq!(used.get("requests.update"), 2, "{used}");
}

#[tokio::test]
async fn a_try_of_a_held_lock_changes_nothing() {
    let server = server().await;
    let locks = open(&server.url()).await;
    let lock = locks.lock("busy").unwrap();
    let guard = lock.acquire().await.unwrap();
    let refused = || async { assert!(lock.try_acquire().await.unwrap().is_none()) };
    assert_eq!(packets(&server, refused).await, 1);
    let (used, ()) = cost(&server, refused()).await;
    assert_eq!(used.get("requests.update"), 0, "{used}");
    guard.release().await.unwrap();
}

#[tokio::test]
async fn a_release_wakes_one_waiter() {
    let server = server().await;
    let (here, there) = (open(&server.url()).await, open(&server.url()).await);
    let guard = here.lock("herd").unwrap().acquire().await.unwrap();
    let first = queue_up(&here, there.lock("herd").unwrap(), "herd", 1).await;
    let mut others = Vec::new();
    for position in 2..30 {
        others.push(queue_up(&here, there.lock("herd").unwrap(), "herd", position).await);
    }
    // The entries are older than 100 ms by now, and watched by their owners.
    eventually("all own nodes are watched", || async {
        server.counters().await.unwrap().get("watches") >= 32
    })
    .await;
    let (used, next) = cost(&server, async {
        guard.release().await.unwrap();
        first.await.unwrap().unwrap()
    })
    .await;
    // The holder's own watch, and the one waiter's.
    assert_eq!(used.get("fired.deleted"), 2, "{used}");
    assert_eq!(used.get("requests.update"), 1, "{used}");
    // The deletion and the query of the counters; a ping of each client may come in between.
    assert!(used.get("packets_received") <= 4, "{used}");
    drop(next);
    for waiter in others {
        drop(soon("each in turn", waiter).await.unwrap().unwrap());
    }
}

/// How often each worker of a hand-over takes the lock.
const ROUNDS: u64 = 50;

/// Lets a worker of each client take the same lock in turns. Returns the packets per acquisition,
/// and the updates. A renewal or a watch may come in between, so this takes the least of a few
/// times.
async fn hand_over(server: &ZooKeeper, clients: &[Locks]) -> (f64, u64) {
    keep(server, "/locks/hot").await;
    let work = async || {
        let workers = clients.iter().map(|locks| {
            let lock = locks.lock("hot").unwrap();
            tokio::spawn(async move {
                for _ in 0..ROUNDS {
                    lock.acquire().await.unwrap().release().await.unwrap();
                }
            })
        });
        for worker in workers.collect::<Vec<_>>() {
            worker.await.unwrap();
        }
    };
    let (mut packets, mut updates) = (u64::MAX, u64::MAX);
    for _ in 0..5 {
        let (used, ()) = cost(server, work()).await;
        packets = packets.min(used.get("packets_received"));
        updates = updates.min(used.get("requests.update"));
    }
    (packets as f64 / (ROUNDS * clients.len() as u64) as f64, updates)
}

/// A creation and a deletion: the entry right before is known.
#[tokio::test]
async fn a_hand_over_within_a_process_is_two_requests() {
    let server = server().await;
    let clients = vec![open(&server.url()).await; 8];
    // Where a hand-over takes longer than this, all nodes grow 100 ms old, and are watched.
    let updates = undisturbed(Duration::from_millis(12), async || {
        let (packets, updates) = hand_over(&server, &clients).await;
        match (2.0..2.3).contains(&packets) {
            true => Ok(updates),
            false => Err(format!("{packets} packets per acquisition")),
        }
    })
    .await;
    assert_eq!(updates, 2 * 8 * ROUNDS);
}

/// A creation and a list, a watch on the entry before, a list when that one is gone, a deletion.
#[tokio::test]
async fn a_hand_over_between_processes_is_five_requests() {
    let server = server().await;
    let mut clients = Vec::new();
    for _ in 0..4 {
        clients.push(open(&server.url()).await);
    }
    // As above. A turn is a chain of several steps, some of them the server's.
    let updates = undisturbed(Duration::from_millis(5), async || {
        let (packets, updates) = hand_over(&server, &clients).await;
        match packets < 5.5 {
            true => Ok(updates),
            false => Err(format!("{packets} packets per acquisition")),
        }
    })
    .await;
    assert_eq!(updates, 2 * 4 * ROUNDS);
}

#[tokio::test]
async fn idle_requests_do_not_grow_with_the_number_of_locks() {
    let server = server().await;
    let locks = open(&format!("{}?ttl=2s", server.url())).await;
    let idle = || async {
        let (used, ()) = cost(&server, tokio::time::sleep(Duration::from_secs(4))).await;
        used.get("packets_received")
    };
    let alone = idle().await;
    let mut held = Vec::new();
    for i in 0..300 {
        held.push(locks.lock(format!("idle{i}")).unwrap().acquire().await.unwrap());
    }
    eventually("all own nodes are watched", || async {
        // And the token floor.
        server.counters().await.unwrap().get("watches") == 301
    })
    .await;
    let crowded = idle().await;
    assert!(crowded <= alone + 3, "{alone} alone, {crowded} with 300 locks");
    assert!(held.iter().all(|guard| guard.is_valid()));
}

#[tokio::test]
async fn create_and_list_are_one_flight() {
    let server = server().await;
    let proxy = proxy(&server).await;
    let locks = open(&server.url_via(&proxy)).await;
    keep(&server, "/locks/far").await;
    let lock = locks.lock("far").unwrap();
    // Long beside what a busy machine takes.
    let one_way = Duration::from_millis(500);
    proxy.delay(one_way);
    let mut least = Duration::MAX;
    for _ in 0..3 {
        let start = Clock::Boot.now();
        let guard = lock.acquire().await.unwrap();
        least = least.min(Clock::Boot.now().since(start));
        guard.release().await.unwrap();
    }
    assert!(least >= one_way * 2 && least < one_way * 4, "{least:?}");
}

#[tokio::test]
async fn a_diagnosis_of_a_long_queue_is_two_reads() {
    let server = server().await;
    let (locks, asker) = (open(&server.url()).await, as_dyn(driver(&server.url()).await.unwrap()));
    let guard = locks.lock("long").unwrap().acquire().await.unwrap();
    let mut waiters = Vec::new();
    for position in 1..30 {
        waiters.push(queue_up(&locks, locks.lock("long").unwrap(), "long", position).await);
    }
    let name = LockName::new("long").unwrap();
    let queue = locks.inspect("long").await.unwrap();
    let attempts: Vec<_> = queue.iter().rev().filter_map(|entry| entry.attempt).collect();
    let diagnose = || async {
        let diagnosis = asker.diagnose(&name, &attempts).await.unwrap();
        assert_eq!(diagnosis.holder.unwrap().token, Some(guard.token()));
        assert_eq!(diagnosis.places, (0..30).rev().map(Some).collect::<Vec<_>>());
    };
    assert_eq!(packets(&server, diagnose).await, 2);
    waiters.iter().for_each(|waiter| waiter.abort());
}
