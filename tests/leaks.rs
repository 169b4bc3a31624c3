//! Nothing remains after thousands of acquires dropped at random moments, of clients, and of locks
//! held by one process.
#![cfg(any(feature = "etcd", feature = "redis", feature = "zookeeper"))]

use std::{
    sync::{
        Arc,
        atomic::{AtomicU32, Ordering},
    },
    time::Duration,
};

use distlock::{Lock, Locks, Result};
use lock_lab::{Counters, Server};
use tokio::task::JoinSet;

use crate::support::{connect, eventually, size, start};

const TASKS: u32 = 50;
const NAMES: u32 = 16;

/// The counters of each store's contents.
fn contents(counters: &Counters) -> Vec<(&'static str, u64)> {
    [
        "keys",
        "leases",
        "watchers",
        "ephemerals",
        "watches",
        "clients",
        "connections",
        "sessions",
        "pubsub_channels",
    ]
    .map(|what| (what, counters.get(what)))
    .to_vec()
}

/// Many tasks acquire a few names and drop the future after a random number of microseconds: while
/// it connects, asks, waits, or is granted.
async fn dropped_acquires_leave_nothing(store: &str) {
    let server = start(store).await;
    let locks = connect(&format!("{}?ttl=6s", server.url())).await;
    // A small load first, and a round of renewals. They create the client's own costs (its session,
    // its streams and their tasks). The large load must not add to them.
    drop_acquires(&locks, 1_000).await;
    let (before, tasks_before) = settled(&server).await;
    drop_acquires(&locks, size(4_000, 20_000)).await;
    nothing_more(&server, &before, tasks_before).await;
}

async fn drop_acquires(locks: &Locks, drops: u32) {
    let done = Arc::new(AtomicU32::new(0));
    let mut tasks = JoinSet::new();
    for task in 0..TASKS {
        let (locks, done, name) = (locks.clone(), done.clone(), queue(task % NAMES));
        let lock = locks.lock(&name).unwrap();
        tasks.spawn(async move {
            while done.fetch_add(1, Ordering::Relaxed) < drops {
                let moment = Duration::from_micros(random() % 6000);
                let _ = match random() % 8 {
                    0..5 => tokio::time::timeout(moment, of_a_lock(&lock)).await,
                    _ => tokio::time::timeout(moment, of_another_kind(&locks, &name)).await,
                };
                // A full turn now and then, behind all dropped attempts. Otherwise the load could
                // run ahead of the server without limit.
                if random().is_multiple_of(16) {
                    lock.acquire().await.unwrap().release().await.unwrap();
                }
            }
        });
    }
    tasks.join_all().await;
    for name in (0..NAMES).map(queue) {
        let empty = || async { locks.inspect(&name).await.unwrap().is_empty() };
        eventually("nobody in the queue", empty).await;
    }
}

async fn of_a_lock(lock: &Lock) -> Result<()> {
    lock.acquire().await.map(drop)
}

/// Sets, permits and conversions: their requests are others.
async fn of_another_kind(locks: &Locks, name: &str) -> Result<()> {
    let next = queue(u32::try_from(random() % u64::from(NAMES)).expect("a small number"));
    match random() % 4 {
        0 => drop(locks.all([name, &next])?.acquire().await?),
        1 => drop(locks.semaphore(name, 3)?.acquire_many(2).await?),
        2 => drop(locks.lock(name)?.acquire().await?.downgrade().await?),
        _ => drop(locks.shared(name)?.acquire().await?.try_upgrade().await?),
    }
    Ok(())
}

fn queue(n: u32) -> String {
    format!("drop-{n}")
}

/// The counts after they have not changed for a while.
async fn settled(server: &Server) -> (Vec<(&'static str, u64)>, usize) {
    let mut before = (Vec::new(), 0);
    loop {
        let now = (contents(&server.counters().await.unwrap()), tasks());
        if now == before {
            return now;
        }
        before = now;
        // Longer than the time between renewals.
        tokio::time::sleep(Duration::from_secs(3)).await;
    }
}

async fn nothing_more(server: &Server, before: &[(&'static str, u64)], tasks_before: usize) {
    let mut last = String::new();
    let wait = async {
        loop {
            let now = contents(&server.counters().await.unwrap());
            let more: Vec<_> =
                now.iter().zip(before).filter(|(now, before)| now.1 > before.1).collect();
            last = format!("(now, before): {more:?}; tasks {} of {tasks_before}", tasks());
            if more.is_empty() && tasks() <= tasks_before {
                return;
            }
            tokio::time::sleep(Duration::from_millis(50)).await;
        }
    };
    let waited = tokio::time::timeout(Duration::from_secs(60), wait).await;
    waited.unwrap_or_else(|_| panic!("left behind after 60 s: {last}"));
}

fn tasks() -> usize {
    tokio::runtime::Handle::current().metrics().num_alive_tasks()
}

/// Not a good generator, but each call returns a different number.
fn random() -> u64 {
    uuid::Uuid::new_v4().as_u64_pair().0
}

/// As of a service that connects for each of its requests.
async fn many_clients_leave_nothing(store: &str) {
    let server = start(store).await;
    one_request(&server.url()).await;
    let (before, tasks_before) = settled(&server).await;
    let mut tasks = JoinSet::new();
    for _ in 0..8 {
        let url = server.url();
        tasks.spawn(async move {
            for _ in 0..size(25, 250) {
                one_request(&url).await;
            }
        });
    }
    tasks.join_all().await;
    nothing_more(&server, &before, tasks_before).await;
}

async fn one_request(url: &str) {
    let locks = connect(url).await;
    locks.lock("request").unwrap().acquire().await.unwrap().release().await.unwrap();
    locks.close().await.unwrap();
}

/// The same idle time with 10 locks and with thousands. The number of requests does not grow, except
/// on Redis: it renews keys one by one, with one more call per thousand locks.
async fn thousands_of_locks_idle_as_cheaply_as_ten(store: &str) {
    let server = start(store).await;
    let locks = connect(&format!("{}?ttl=6s", server.url())).await;
    let count = size(2_000, 10_000);
    let mut held = hold(&locks, 0..10).await;
    let few = idle_requests(store, &server).await;
    held.extend(hold(&locks, 10..count).await);
    let many = idle_requests(store, &server).await;
    assert!(held.iter().all(|guard| guard.is_valid()), "some of {count} locks were lost");
    let chunks = if store == "redis" { u64::from(count / 1000) } else { 1 };
    println!("{store}: {few} requests in 6 s with 10 locks, {many} with {count}");
    // Two rounds may fall into one of the windows, and one or three into the other.
    assert!(
        many <= few.max(1) * chunks * 2 + 4,
        "{few} requests with 10 locks, {many} with {count}"
    );
}

async fn hold(locks: &Locks, names: std::ops::Range<u32>) -> Vec<distlock::LockGuard> {
    let mut tasks = JoinSet::new();
    let mut held = Vec::new();
    for n in names {
        tasks.spawn(locks.lock(format!("many-{n}")).unwrap().acquire());
        if tasks.len() >= 64 {
            held.extend(tasks.join_next().await.map(|guard| guard.unwrap().unwrap()));
        }
    }
    held.extend(tasks.join_all().await.into_iter().map(Result::unwrap));
    held
}

/// Requests to the server during one TTL without an acquire or a release.
async fn idle_requests(store: &str, server: &Server) -> u64 {
    // Watches of new holds are set a moment after the grant.
    tokio::time::sleep(Duration::from_secs(2)).await;
    let before = server.counters().await.unwrap();
    tokio::time::sleep(Duration::from_secs(6)).await;
    let since = server.counters().await.unwrap().since(&before);
    since.iter().filter(|(what, _)| is_request(store, what)).map(|(_, count)| count).sum()
}

/// Whether a counter is that of requests of clients.
pub fn is_request(store: &str, what: &str) -> bool {
    match store {
        // The server also counts the commands of scripts. Only the scripts come from clients.
        "redis" => ["cmd.evalsha", "cmd.eval", "cmd.ping", "cmd.subscribe"].contains(&what),
        "etcd" => what.starts_with("msg."),
        _ => what == "packets_received",
    }
}

on_every_server!(
    dropped_acquires_leave_nothing,
    many_clients_leave_nothing,
    thousands_of_locks_idle_as_cheaply_as_ten,
);
