//! PostgreSQL tells the next in line, and polls nothing. MySQL has no pushes.

use std::time::Duration;

use lock_core::Clock;
use lock_sql::Dialect;

use crate::{Database, eventually, locks};

/// Well below the slow look that would find out as well.
const SOON: Duration = Duration::from_secs(2);

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_release_wakes_the_next_client() {
    let server = Database::start(Dialect::Postgres).await;
    let (here, there) = (locks(&server.url()).await, locks(&server.url()).await);
    for _ in 0..20 {
        let guard = here.lock("a").unwrap().acquire().await.unwrap();
        let waiter = tokio::spawn(there.lock("a").unwrap().acquire());
        eventually("a waiter", async || server.entries().await == 2).await;
        guard.release().await.unwrap();
        let next = tokio::time::timeout(SOON, waiter).await.expect("no push for the next in line");
        next.unwrap().unwrap().release().await.unwrap();
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn who_waits_asks_nothing() {
    // A renewal every 5 s and a slow look every 2.5 s, however many wait.
    let (looks, seconds) = looks_of_a_crowd(Dialect::Postgres).await;
    assert!(looks as f64 <= seconds + 4.0, "{looks} in {seconds} s");
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn who_waits_for_mysql_asks_for_the_whole_client_at_once() {
    // The head's pace: every 12 to 25 ms, whoever else waits.
    let (looks, seconds) = looks_of_a_crowd(Dialect::MySql).await;
    assert!(looks as f64 <= seconds * 80.0 + 4.0, "{looks} in {seconds} s");
}

/// How many queries 64 waiters of one client send in about 4 s, and in how many seconds.
async fn looks_of_a_crowd(dialect: Dialect) -> (u64, f64) {
    let server = Database::start(dialect).await;
    let (here, there) = (locks(&server.url()).await, locks(&server.url()).await);
    let guard = here.lock("a").unwrap().acquire().await.unwrap();
    let waiter = |_| {
        let acquire = there.lock("a").unwrap().acquire();
        tokio::spawn(async move { acquire.await?.release().await })
    };
    let waiters: Vec<_> = (0..64).map(waiter).collect();
    eventually("all waiters", async || server.entries().await == 65).await;
    let (start, before) = (Clock::Boot.now(), server.counters().await.unwrap());
    tokio::time::sleep(Duration::from_secs(4)).await;
    let since = server.counters().await.unwrap().since(&before);
    let seconds = Clock::Boot.now().since(start).as_secs_f64();
    println!("{dialect:?}, 64 waiters for 4 s: {since}");
    guard.release().await.unwrap();
    for waiter in waiters {
        waiter.await.unwrap().unwrap();
    }
    (since.get("cmd.select"), seconds)
}
