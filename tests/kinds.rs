//! Locks under contention, on every store: threads that count without other protection, and
//! semaphores of several sizes.

use std::{
    sync::{
        Arc,
        atomic::{AtomicU32, AtomicU64, Ordering},
    },
    thread,
    time::Duration,
};

use distlock::blocking;
use tokio::{sync::Barrier, task::JoinSet};

use crate::support;

const THREADS: u64 = 8;

fn rounds() -> u64 {
    support::size(20, 50)
}

on_every_store!(threads_and_tasks);

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn memory() {
    all_kinds("memory:kinds").await;
}

#[allow(dead_code, reason = "there may be no feature but memory")]
async fn threads_and_tasks(store: &str) {
    let server = support::Store::open(store).await;
    all_kinds(&server.url()).await;
}

async fn all_kinds(url: &str) {
    let here = url.to_owned();
    tokio::task::spawn_blocking(move || count(&here)).await.unwrap();
    for limit in [1, 3, 64] {
        semaphore(url, limit).await;
    }
}

/// Threads on two connections add to a counter by reading and writing it. This loses additions if
/// two threads do it at once.
fn count(url: &str) {
    let connections = [0, 1].map(|_| blocking::connect(url).unwrap());
    let counter = AtomicU64::new(0);
    thread::scope(|scope| {
        for n in 0..THREADS {
            let lock = connections[usize::from(n % 2 == 0)].lock("count").unwrap();
            let counter = &counter;
            scope.spawn(move || {
                for _ in 0..rounds() {
                    let guard = lock.acquire().unwrap();
                    let read = counter.load(Ordering::Relaxed);
                    thread::yield_now();
                    counter.store(read + 1, Ordering::Relaxed);
                    guard.release().unwrap();
                }
            });
        }
    });
    assert_eq!(counter.into_inner(), THREADS * rounds());
}

/// Never more holders than permits, and as many at once as there are permits: each waits inside
/// until all of them are there.
async fn semaphore(url: &str, limit: u32) {
    let connections = [support::connect(url).await, support::connect(url).await];
    let (inside, all) = (Arc::new(AtomicU32::new(0)), Arc::new(Barrier::new(limit as usize)));
    let mut tasks = JoinSet::new();
    for n in 0..3 * limit {
        let semaphore =
            connections[n as usize % 2].semaphore(format!("of {limit}"), limit).unwrap();
        let (inside, all) = (inside.clone(), all.clone());
        tasks.spawn(async move {
            let guard = semaphore.acquire().await.unwrap();
            let now = inside.fetch_add(1, Ordering::SeqCst) + 1;
            assert!(now <= limit, "{now} of {limit} permits are in use");
            all.wait().await;
            inside.fetch_sub(1, Ordering::SeqCst);
            guard.release().await.unwrap();
        });
    }
    while !tasks.is_empty() {
        let next = tokio::time::timeout(Duration::from_secs(60), tasks.join_next()).await;
        next.unwrap_or_else(|_| panic!("never {limit} holders at a time")).unwrap().unwrap();
    }
}
