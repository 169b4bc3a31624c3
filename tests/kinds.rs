//! All kinds of locks under contention, on every store: threads that count without other
//! protection, readers that check for torn state, and semaphores of several sizes.

use std::{
    sync::{
        Arc,
        atomic::{AtomicU32, AtomicU64, Ordering},
    },
    thread,
    time::Duration,
};

use distlock::{Locks, blocking};
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
    torn_state(url).await;
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

/// Writers change two numbers one after the other. Readers, several at once, see them equal.
async fn torn_state(url: &str) {
    let state = Arc::new([AtomicU64::new(0), AtomicU64::new(0)]);
    let mut tasks = JoinSet::new();
    let mut connections = Vec::new();
    for n in 0..3_u32 {
        let locks = support::connect(url).await;
        for _ in 0..=n {
            tasks.spawn(write(locks.clone(), state.clone()));
            tasks.spawn(read(locks.clone(), state.clone()));
        }
        connections.push(locks);
    }
    tasks.join_all().await;
    assert_eq!(state[0].load(Ordering::Relaxed), 6 * rounds());
}

async fn write(locks: Locks, state: Arc<[AtomicU64; 2]>) {
    let lock = locks.lock("state").unwrap();
    for _ in 0..rounds() {
        let guard = lock.acquire().await.unwrap();
        let next = state[0].load(Ordering::Relaxed) + 1;
        state[0].store(next, Ordering::Relaxed);
        tokio::task::yield_now().await;
        state[1].store(next, Ordering::Relaxed);
        guard.release().await.unwrap();
    }
}

async fn read(locks: Locks, state: Arc<[AtomicU64; 2]>) {
    let lock = locks.shared("state").unwrap();
    for _ in 0..rounds() {
        let guard = lock.acquire().await.unwrap();
        let first = state[0].load(Ordering::Relaxed);
        tokio::task::yield_now().await;
        assert_eq!(state[1].load(Ordering::Relaxed), first, "a writer was at work");
        guard.release().await.unwrap();
    }
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
