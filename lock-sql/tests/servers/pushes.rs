//! PostgreSQL pushes to the next client in line, which does not poll. MySQL has no pushes.

use std::{collections::VecDeque, time::Duration};

use lock_core::{Clock, Locks};
use lock_lab::Proxy;
use lock_sql::Dialect;

use crate::servers::{Database, bounded::bounded, eventually, locks, rotation::end_connections};

/// Well below the pause until the slow look of PostgreSQL, which would find out as well, and enough
/// for a look of MySQL.
const SOON: Duration = Duration::from_secs(2);

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_release_wakes_the_next_client() {
    let server = Database::start(Dialect::Postgres).await;
    let (here, there) = (locks(&server.url()).await, locks(&server.url()).await);
    a_release_wakes(&server, &here, &there, 20).await;
}

/// Hands a lock on from one client of the server to the other, again and again.
pub async fn a_release_wakes(server: &Database, here: &Locks, there: &Locks, rounds: usize) {
    for _ in 0..rounds {
        let guard = here.lock("a").unwrap().acquire().await.unwrap();
        let waiter = tokio::spawn(there.lock("a").unwrap().acquire());
        eventually("a waiter", async || server.entries().await == 2).await;
        guard.release().await.unwrap();
        let next = bounded("the next in line is woken", SOON, waiter).await;
        next.unwrap().unwrap().release().await.unwrap();
    }
}

/// A permit that comes back wakes the one client that it lets in, and no client is overlooked.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_permit_wakes_only_the_client_that_it_lets_in() {
    const CLIENTS: u64 = 8;
    let server = Database::start(Dialect::Postgres).await;
    let here = locks(&server.url()).await;
    let mut held = VecDeque::new();
    for _ in 0..2 {
        held.push_back(here.semaphore("p", 2).unwrap().acquire().await.unwrap());
    }
    let mut waiters = Vec::new();
    for n in 1..=CLIENTS {
        let there = locks(&server.url()).await;
        waiters.push(tokio::spawn(there.semaphore("p", 2).unwrap().acquire()));
        eventually("a waiter", async || server.entries().await == 2 + n).await;
    }
    let (start, before) = (Clock::Boot.now(), server.counters().await.unwrap());
    for waiter in waiters {
        held.pop_front().unwrap().release().await.unwrap();
        let next = bounded("a push for the next in line", SOON, waiter).await;
        held.push_back(next.unwrap().unwrap());
    }
    let since = server.counters().await.unwrap().since(&before);
    println!("{CLIENTS} permits handed over: {since}");
    // A release locks the counter and wakes one client, which looks. A slow look may come in
    // between.
    let looks = since.get("cmd.select") - CLIENTS * 2;
    let slow = CLIENTS as f64 * Clock::Boot.now().since(start).as_secs_f64() / 2.5;
    assert!((looks as f64) < (CLIENTS * 2) as f64 + slow, "{looks} looks: {since}");
}

/// Two attempts that leave at the same time both see the other one still there, unless they leave
/// in turn.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn permits_that_come_back_together_are_enough_for_a_greater_one() {
    let server = Database::start(Dialect::Postgres).await;
    let (here, there) = (locks(&server.url()).await, locks(&server.url()).await);
    let (permits, more) = (here.semaphore("p", 2).unwrap(), there.semaphore("p", 2).unwrap());
    for _ in 0..50 {
        let first = permits.acquire().await.unwrap();
        let second = permits.acquire().await.unwrap();
        let both = tokio::spawn(more.acquire_many(2));
        eventually("a waiter", async || server.entries().await == 3).await;
        let (first, second) = (tokio::spawn(first.release()), tokio::spawn(second.release()));
        let both = bounded("a push for two permits", SOON, both).await;
        first.await.unwrap().unwrap();
        second.await.unwrap().unwrap();
        both.unwrap().unwrap().release().await.unwrap();
    }
}

/// A reader that leaves last wakes the writer, which wakes all readers behind it.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn readers_and_writers_wake_each_other() {
    let server = Database::start(Dialect::Postgres).await;
    let (here, there) = (locks(&server.url()).await, locks(&server.url()).await);
    let others = [locks(&server.url()).await, locks(&server.url()).await];
    for _ in 0..20 {
        let (first, second) = (here.shared("a").unwrap(), there.shared("a").unwrap());
        let (first, second) = (first.acquire().await.unwrap(), second.acquire().await.unwrap());
        let writer = tokio::spawn(there.lock("a").unwrap().acquire());
        eventually("a writer", async || server.entries().await == 3).await;
        let readers =
            others.each_ref().map(|other| tokio::spawn(other.shared("a").unwrap().acquire()));
        eventually("readers", async || server.entries().await == 5).await;
        let (first, second) = (tokio::spawn(first.release()), tokio::spawn(second.release()));
        let writer = bounded("a push for the writer", SOON, writer).await;
        first.await.unwrap().unwrap();
        second.await.unwrap().unwrap();
        writer.unwrap().unwrap().release().await.unwrap();
        for reader in readers {
            let reader = bounded("a push for a reader", SOON, reader).await;
            reader.unwrap().unwrap().release().await.unwrap();
        }
    }
}

/// The other end of a connection has died in silence: only a question shows it, long before the
/// next renewal.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_silent_connection_for_pushes_is_replaced() {
    let server = Database::start(Dialect::Postgres).await;
    let locks = locks(&server.url()).await;
    locks.lock("b").unwrap().acquire().await.unwrap().release().await.unwrap();
    // The last query of a connection for pushes, before its first check and after it.
    let listening = |query: &str| {
        format!(
            "SELECT min(pid) FROM pg_stat_activity WHERE application_name = 'distlock' \
             AND state = 'idle' AND query ~ '{query}'"
        )
    };
    let first = listening("^LISTEN .*leaders");
    let mut silent = 0;
    eventually("who listens", async || {
        silent = server.sql(&first).await.trim().parse().unwrap_or(0);
        silent != 0
    })
    .await;
    let (long, pid) = (Duration::from_secs(300), rustix::process::Pid::from_raw(silent).unwrap());
    let guard = locks.lock("a").unwrap().ttl(long).acquire().await.unwrap();
    rustix::process::kill_process(pid, rustix::process::Signal::STOP).unwrap();
    let others = format!("{} AND pid <> {silent}", listening("^(LISTEN|$)"));
    let replaced = eventually("another connection listens", async || {
        server.sql(&others).await.trim().parse::<i32>().is_ok()
    });
    replaced.await;
    rustix::process::kill_process(pid, rustix::process::Signal::CONT).unwrap();
    guard.release().await.unwrap();
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn waiters_on_postgres_do_not_poll() {
    // A renewal every 5 s and a slow look every 2.5 s, however many attempts wait.
    let (looks, seconds) = looks_of_a_crowd(Dialect::Postgres).await;
    assert!(looks as f64 <= seconds + 4.0, "{looks} in {seconds} s");
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn waiters_on_mysql_share_one_query_per_client() {
    // The head's pace, however many others wait.
    let (looks, seconds) = looks_of_a_crowd(Dialect::MySql).await;
    assert!(looks as f64 <= polls(seconds) + 4.0, "{looks} in {seconds} s");
}

/// A holder that has just come is looked at often, but not for long.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_long_hold_on_mysql_costs_few_looks_more() {
    let server = Database::start(Dialect::MySql).await;
    let (here, there) = (locks(&server.url()).await, locks(&server.url()).await);
    let guard = here.lock("a").unwrap().acquire().await.unwrap();
    let (start, before) = (Clock::Boot.now(), server.counters().await.unwrap());
    let waiter = tokio::spawn(there.lock("a").unwrap().acquire());
    tokio::time::sleep(Duration::from_millis(500)).await;
    let since = server.counters().await.unwrap().since(&before);
    let (looks, seconds) = (since.get("cmd.select"), Clock::Boot.now().since(start).as_secs_f64());
    println!("one waiter for {seconds} s: {since}");
    assert!(looks as f64 <= polls(seconds) + 4.0, "{looks} in {seconds} s");
    guard.release().await.unwrap();
    waiter.await.unwrap().unwrap().release().await.unwrap();
}

/// Most looks of a client on MySQL whose first waiter is next: one every 12.5 ms, and 30 more while
/// the holder is new.
fn polls(seconds: f64) -> f64 {
    seconds * 80.0 + 30.0
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

/// An attempt that leaves takes an expired entry for one that stays, and wakes no client. So
/// waiters remove expired entries.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn expired_entries_in_front_delay_no_waiter() {
    const NAMES: [&str; 4] = ["a", "b", "c", "d"];
    let server = Database::start(Dialect::Postgres).await;
    let network = Proxy::start(server.addr()).await.unwrap();
    let dead = locks(&server.url_via(&network)).await;
    let (here, there) = (locks(&server.url()).await, locks(&server.url()).await);
    let (mut lost, mut readers, mut writers) = (Vec::new(), Vec::new(), Vec::new());
    for name in NAMES {
        let short = dead.shared(name).unwrap().ttl(Duration::from_secs(3));
        lost.push(short.acquire().await.unwrap());
        readers.push(here.shared(name).unwrap().acquire().await.unwrap());
        writers.push(tokio::spawn(there.lock(name).unwrap().acquire()));
    }
    eventually("all of them", async || server.entries().await == 12).await;
    network.cut();
    eventually("the dead removed", async || server.entries().await == 8).await;
    for reader in readers {
        reader.release().await.unwrap();
    }
    for writer in writers {
        let next = bounded("a push for the writer", SOON, writer).await;
        next.unwrap().unwrap().release().await.unwrap();
    }
    drop(lost);
}

/// Nobody rings when a lock expires, whichever client's it is.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_detached_lock_is_followed_by_the_client_that_left_it() {
    let server = Database::start(Dialect::Postgres).await;
    let (here, there) = (locks(&server.url()).await, locks(&server.url()).await);
    let guard = there.lock("a").unwrap().acquire().await.unwrap();
    let short = here.lock("a").unwrap().ttl(Duration::from_millis(1500));
    let second = tokio::spawn(short.acquire());
    eventually("the second", async || server.entries().await == 2).await;
    let third = tokio::spawn(here.lock("a").unwrap().acquire());
    eventually("the third", async || server.entries().await == 3).await;
    // One push comes, by which the second learns that it has the lock.
    guard.release().await.unwrap();
    let second = second.await.unwrap().unwrap();
    let _ticket = second.detach().await.unwrap();
    let third = bounded("the expiry is followed", SOON, third).await;
    third.unwrap().unwrap().release().await.unwrap();
}

/// A client listens some time after it has connected, and may hold a lock by then.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_revoked_lock_is_lost_though_its_client_did_not_listen_yet() {
    let server = Database::start(Dialect::Postgres).await;
    let here = locks(&server.url()).await;
    for _ in 0..20 {
        let victim = locks(&server.url()).await;
        let guard = victim.lock("a").unwrap().acquire().await.unwrap();
        let attempt = here.inspect("a").await.unwrap()[0].attempt.unwrap();
        assert!(here.revoke("a", attempt).await.unwrap());
        bounded("the victim is told", SOON, guard.lost()).await;
    }
}

/// A login takes more than the 2 s that are allowed where the configuration names no time.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn pushes_come_over_a_slow_network_with_a_longer_limit() {
    let server = Database::start(Dialect::Postgres).await;
    let network = Proxy::start(server.addr()).await.unwrap();
    let near = locks(&server.url()).await;
    network.delay(Duration::from_millis(300));
    let far = locks(&(server.url_via(&network) + "?connect_timeout=15s")).await;
    for (client, name) in [(&near, "near"), (&far, "far")] {
        client.lock(name).unwrap().acquire().await.unwrap().release().await.unwrap();
    }
    // The other one listens at once.
    let listening = "SELECT count(*) FROM pg_stat_activity WHERE query ~ '^LISTEN .*leaders'";
    eventually("both listen", async || server.sql(listening).await.trim() == "2").await;
    drop((near, far));
}

/// A look on a new connection that the server has no room for.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn looks_that_find_no_room_become_rare() {
    let server = Database::start_for_everyone(Dialect::Postgres).await;
    let (here, there) = (locks(&server.url()).await, locks(&server.url_as("plain:plain")).await);
    let guard = here.lock("a").unwrap().acquire().await.unwrap();
    let waiter = there.lock("a").unwrap().ttl(Duration::from_secs(60)).acquire();
    let waiter = tokio::spawn(waiter);
    eventually("it waits", async || server.entries().await == 2).await;
    server.sql_as_admin("ALTER ROLE plain CONNECTION LIMIT 0").await;
    end_connections(&server, "plain").await;
    let refused = || server.log().matches("too many connections for role").count();
    // The connection for pushes is refused at once, and after 2.5 to 5 s a look.
    eventually("looks are refused", async || refused() > 12).await;
    let (start, before) = (Clock::Boot.now(), refused());
    tokio::time::sleep(Duration::from_secs(5)).await;
    let (many, seconds) = (refused() - before, Clock::Boot.now().since(start).as_secs_f64());
    println!("{many} in {seconds} s");
    // A look in 0.5 to 1 s, and one more connection for pushes.
    assert!(many as f64 <= seconds * 4.0, "{many} in {seconds} s");
    server.sql_as_admin("ALTER ROLE plain CONNECTION LIMIT -1").await;
    guard.release().await.unwrap();
    waiter.await.unwrap().unwrap().release().await.unwrap();
}
