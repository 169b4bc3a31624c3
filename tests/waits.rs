//! Many waits in vain at once: they end in time, as timeouts.
#![cfg(any(feature = "etcd", feature = "redis", feature = "zookeeper"))]

use std::{collections::BTreeMap, time::Duration};

use distlock::{Error, Lock, LockGuard, Locks};
use lock_core::Clock;
use lock_lab::Proxy;
use tokio::task::JoinSet;

use crate::support::{Running, beat::Beat, connect, start};

const LIMIT: Duration = Duration::from_secs(3);
/// The documented overrun of `wait`, and a second for a busy machine.
const OVERRUN: Duration = Duration::from_secs(3);

/// A lock that is held, and a network with a delay of 1 ms each way to it.
async fn busy(store: &str) -> (Running, Proxy, LockGuard) {
    let server = start(store).await;
    let proxy = Proxy::start(server.addr()).await.unwrap();
    proxy.delay(Duration::from_millis(1));
    let holder = connect(&server.url()).await;
    let held = holder.lock("busy").unwrap().acquire().await.unwrap();
    (server, proxy, held)
}

fn limited(locks: &Locks) -> Lock {
    locks.lock("busy").unwrap().wait(LIMIT)
}

async fn a_thousand_waits_of_one_process_end_as_timeouts(store: &str) {
    let (server, proxy, held) = busy(store).await;
    let locks = connect(&server.url_via(&proxy)).await;
    end_as_timeouts((0..1000).map(|_| limited(&locks)).collect()).await;
    assert!(held.is_valid(), "waits of others cost the holder its lock");
}

/// Checks that all waits end as timeouts, in time.
async fn end_as_timeouts(waits: Vec<Lock>) {
    let (count, mut ends) = (waits.len(), BTreeMap::<_, usize>::new());
    let (mut waiters, beat) = (JoinSet::new(), Beat::start());
    for lock in waits {
        waiters.spawn(async move {
            let started = Clock::Boot.now();
            let end = lock.acquire().await;
            (end, Clock::Boot.now().since(started))
        });
    }
    let (mut longest, mut named) = (Duration::ZERO, 0);
    while let Some(ended) = waiters.join_next().await {
        let (end, took) = ended.unwrap();
        longest = longest.max(took);
        let end = match end {
            Err(Error::WaitTimeout { holder, .. }) => {
                named += usize::from(holder.is_some());
                "a timeout".to_owned()
            }
            other => format!("{other:?}"),
        };
        *ends.entry(end).or_default() += 1;
    }
    let late = beat.late();
    println!("the longest of {count} waits took {longest:?}; {named} name the holder");
    assert_eq!(ends, BTreeMap::from([("a timeout".to_owned(), count)]));
    assert!(longest < LIMIT + OVERRUN + late, "{longest:?}, tasks are late by {late:?}");
}

on_every_server!(a_thousand_waits_of_one_process_end_as_timeouts);

#[cfg(feature = "redis")]
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn three_hundred_redis_clients_with_one_wait_each_end_as_timeouts() {
    let (server, proxy, _held) = busy("redis").await;
    let mut waits = Vec::new();
    for _ in 0..300 {
        waits.push(limited(&connect(&server.url_via(&proxy)).await));
    }
    end_as_timeouts(waits).await;
}
