//! The costs of locks other than time, on this machine: memory and requests of held locks, requests
//! while other clients wait, and round trips.
//!
//! `cargo bench -p distlock-benches --features all --bench costs [-- STORE]`

use std::{process::Command, time::Duration};

use bench::store;
use distlock::{LockGuard, Locks};
use lock_core::Clock;
use lock_lab::{AnyStore, Proxy};
use tokio::task::JoinSet;

/// Number of locks held first, and number of locks added then.
const HELD: usize = 10_000;
const WAITERS: usize = 64;
/// Time for which requests are counted.
const WINDOW: Duration = Duration::from_secs(5);
/// Time for watches and sessions to be set up.
const SETTLE: Duration = Duration::from_secs(2);
/// One-way delay to the server.
const FAR: Duration = Duration::from_millis(20);

fn main() {
    let stores = store::all();
    if let [store] = stores[..] {
        return bench::block_on(measure(store));
    }
    // Each store runs in its own process. Otherwise one would reuse the memory freed by the one
    // before.
    for store in stores {
        let this = std::env::current_exe().expect("this program");
        let ended = Command::new(this).arg(store).status().expect("it starts");
        assert!(ended.success(), "{store}: {ended}");
    }
}

async fn measure(store: &str) {
    let place = AnyStore::open_in_memory(store).await;
    held(store, &place).await;
    waiting(store, &place).await;
    far(store, &place).await;
}

async fn connect(url: &str) -> Locks {
    distlock::connect(url).await.expect("a connection")
}

/// Requests per second while nothing changes. Empty if the server does not count.
async fn idle(store: &str, place: &AnyStore) -> String {
    tokio::time::sleep(SETTLE).await;
    let before = store::counters(place).await;
    tokio::time::sleep(WINDOW).await;
    let since = store::counters(place).await.since(&before);
    let requests = store::requests(store, &since) as f64 / WINDOW.as_secs_f64();
    place.server().map(|_| format!("{requests:.1} requests/s")).unwrap_or_default()
}

/// Measures the second ten thousand: the first includes the one-time costs of a client.
async fn held(store: &str, place: &AnyStore) {
    let locks = connect(&place.url()).await;
    let mut guards = hold(&locks, 0..HELD).await;
    idle(store, place).await;
    let before = resident();
    guards.extend(hold(&locks, HELD..2 * HELD).await);
    let requests = idle(store, place).await;
    let each = resident().saturating_sub(before) / HELD;
    println!("{store}: {} locks held: {each} bytes each, {requests}", guards.len());
    assert!(guards.iter().all(|guard| guard.is_valid()), "a lock was lost");
    locks.close().await.expect("a close");
}

async fn hold(locks: &Locks, names: std::ops::Range<usize>) -> Vec<LockGuard> {
    let (mut tasks, mut guards) = (JoinSet::new(), Vec::new());
    for name in names {
        tasks.spawn(locks.lock(format!("held-{name}")).expect("a name").acquire());
        if tasks.len() == WAITERS {
            guards.extend(tasks.join_next().await);
        }
    }
    guards.extend(tasks.join_all().await.into_iter().map(Ok));
    guards.into_iter().map(|guard| guard.expect("a task").expect("the lock")).collect()
}

/// Memory of this process in bytes.
fn resident() -> usize {
    let statm = std::fs::read_to_string("/proc/self/statm").expect("Linux");
    let pages = statm.split(' ').nth(1).and_then(|pages| pages.parse::<usize>().ok());
    pages.expect("a number") * 4096
}

/// This many clients, each with its own connection, wait for one lock.
async fn waiting(store: &str, place: &AnyStore) {
    let holder = connect(&place.url()).await;
    let lock = holder.lock("waited-for").expect("a name");
    let guard = lock.acquire().await.expect("the lock");
    let mut waiters = JoinSet::new();
    for _ in 0..WAITERS {
        let locks = connect(&place.url()).await;
        waiters.spawn(async move {
            let guard = locks.lock("waited-for").expect("a name").acquire().await;
            guard.expect("the lock").release().await.expect("a release");
            locks.close().await.expect("a close");
        });
    }
    while holder.inspect("waited-for").await.expect("the queue").len() <= WAITERS {
        tokio::time::sleep(Duration::from_millis(10)).await;
    }
    let requests = idle(store, place).await;
    let released = Clock::Boot.now();
    guard.release().await.expect("a release");
    waiters.join_all().await;
    let took = Clock::Boot.now().since(released);
    println!("{store}: {WAITERS} clients wait: {requests}; all are served in {took:.1?}");
}

/// The minimum of a few runs: a busy machine only adds time.
async fn far(store: &str, place: &AnyStore) {
    let Some(server) = place.server() else { return };
    let proxy = Proxy::start(server.addr()).await.expect("a proxy");
    let lock = connect(&server.url_via(&proxy)).await.lock("far").expect("a name");
    lock.acquire().await.expect("the lock").release().await.expect("a release");
    proxy.delay(FAR);
    let (mut acquire, mut release) = (Duration::MAX, Duration::MAX);
    for _ in 0..5 {
        let asked = Clock::Boot.now();
        let guard = lock.acquire().await.expect("the lock");
        let granted = Clock::Boot.now();
        guard.release().await.expect("a release");
        acquire = acquire.min(granted.since(asked));
        release = release.min(Clock::Boot.now().since(granted));
    }
    let trips = |took: Duration| took.as_secs_f64() / (2 * FAR).as_secs_f64();
    let (acquire, release) = (trips(acquire), trips(release));
    println!("{store}: round trips of {:?}: acquire {acquire:.2}, release {release:.2}", 2 * FAR);
}
