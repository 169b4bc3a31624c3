//! The figures of `docs/sizing.md`: connections and requests of clients that hold and wait.
#![cfg(any(feature = "etcd", feature = "redis", feature = "zookeeper"))]

use std::time::Duration;

use distlock::Locks;
use lock_core::{
    keep::{
        limits::DEFAULT_TTL,
        renewal::{RENEWALS_PER_TTL, RENEWALS_WITHOUT_PUSHES},
    },
    validity::margin,
};
use lock_lab::{Proxy, Server};
use lock_sql::{Dialect, pace};
use tokio::task::JoinSet;

use crate::{
    leaks::is_request,
    support::{connect, eventually, start},
};

const PAGE: &str = include_str!("../docs/sizing.md");
const TTL: Duration = Duration::from_secs(6);
const NAME: &str = "sized";
/// The columns of the waiters: processes, and the waiters of each.
const COLUMNS: [(u32, u32); 6] = [(1, 1), (1, 100), (1, 1000), (20, 15), (100, 1), (100, 10)];

on_every_server!(waiters_cost_what_the_page_says);

fn is_a_row(title: &str, cells: &[String]) {
    let row = format!("\n| {title} | {} |\n", cells.join(" | "));
    assert!(PAGE.contains(&row), "not on the page: {row}");
}

#[test]
fn the_page_shows_the_renewals() {
    for (stores, renewals) in [
        ("etcd, Redis, PostgreSQL", RENEWALS_PER_TTL),
        ("SQLite, MySQL", RENEWALS_WITHOUT_PUSHES),
        ("ZooKeeper, at least; up to twice as many with a short TTL", RENEWALS_WITHOUT_PUSHES),
    ] {
        let rates = [5.0, 30.0, 300.0].map(|ttl| format!("{:.2}", f64::from(renewals) / ttl));
        is_a_row(stores, &rates);
    }
}

#[test]
fn the_page_shows_what_a_ttl_is_worth() {
    // The first renewal comes at most half of a TTL after the grant.
    let outage = |ttl: Duration| ttl - ttl / 2 - margin(ttl);
    let ttls = [5, 30, 300].map(Duration::from_secs);
    let dead = "a dead holder blocks the others for, counted from its last renewal";
    is_a_row(dead, &ttls.map(words));
    is_a_row("an outage that costs no lock", &ttls.map(|ttl| words(outage(ttl))));
    let told = "a holder that is cut off is told, and must have stopped, after";
    is_a_row(told, &ttls.map(|ttl| words(ttl - margin(ttl))));

    let part = outage(DEFAULT_TTL).as_secs_f64() / DEFAULT_TTL.as_secs_f64() * 100.0;
    assert!(PAGE.contains(&format!("{part:.0} % is left")), "{part} %");
    let short = include_str!("../docs/questions.md").replace('\n', " ");
    assert!(short.contains(&format!("an outage of up to {part:.0} % of it costs no lock")));
}

fn words(time: Duration) -> String {
    let minutes = time.as_secs() / 60;
    let seconds = (time - Duration::from_secs(60 * minutes)).as_secs_f64();
    match minutes {
        0 => format!("{seconds} s"),
        _ if seconds > 0.0 => format!("{minutes} min {seconds} s"),
        _ => format!("{minutes} min"),
    }
}

#[test]
fn the_page_shows_what_waiters_cost() {
    for (title, store) in [
        ("etcd", "etcd"),
        ("Redis", "redis"),
        ("ZooKeeper", "zookeeper"),
        ("PostgreSQL", "postgres"),
        ("MySQL", "mysql"),
    ] {
        let rates = COLUMNS.map(|(processes, each)| {
            let [least, most] = rates(store, processes, each).map(figure);
            if least == most { most } else { format!("{least} to {most}") }
        });
        is_a_row(title, &rates);
    }
    let mut connections = COLUMNS.map(|(all, _)| format!("{all}; {}", 2 * all));
    connections[0] = "1; PostgreSQL 2".to_owned();
    is_a_row("connections", &connections);
}

/// The least and the most requests per second of processes with waiters for one lock, with the
/// usual TTL.
fn rates(store: &str, processes: u32, each: u32) -> [f64; 2] {
    let all = f64::from(processes);
    let of = |in_a_ttl: u64| in_a_ttl as f64 / DEFAULT_TTL.as_secs_f64() * all;
    let most = of(per_ttl(store, 0, each.into()));
    // A pause takes from half to the whole of the pace.
    let of_looks = |looks: f64| [most + looks, most + 2.0 * looks];
    let look =
        |dialect, place: u32| 1.0 / pace(dialect, place as usize, Duration::MAX).as_secs_f64();
    match store {
        "zookeeper" => [of(u64::from(RENEWALS_WITHOUT_PUSHES + each)), most],
        "postgres" => of_looks(all * look(Dialect::Postgres, 1)),
        // The first waiter of each process is at the place of its number.
        "mysql" => of_looks((1..=processes).map(|place| look(Dialect::MySql, place)).sum()),
        _ => [most, most],
    }
}

fn figure(rate: f64) -> String {
    match rate < 10.0 {
        true => format!("{rate:.1}").trim_end_matches(".0").to_owned(),
        false => format!("{rate:.0}"),
    }
}

async fn waiters_cost_what_the_page_says(store: &str) {
    let server = start(store).await;
    let proxy = Proxy::start(server.addr()).await.unwrap();
    let url = format!("{}?ttl=6s", server.url_via(&proxy));
    let holder = connect(&url).await;
    let guard = holder.lock(NAME).unwrap().acquire().await.unwrap();
    for (clients, each) in [(1, 1), (1, 300), (20, 15)] {
        let mut others = Vec::new();
        for _ in 0..clients {
            others.push(connect(&url).await);
        }
        let mut waiters = JoinSet::new();
        for waiter in 0..clients * each {
            waiters.spawn(others[waiter % clients].lock(NAME).unwrap().acquire());
        }
        let waiting = || async { holder.inspect(NAME).await.unwrap().len() };
        eventually("all wait", || async { waiting().await == 1 + clients * each }).await;
        let opened = || proxy.stats().connections_open;
        eventually("a connection each", || async { opened() == 1 + clients as u64 }).await;
        let used = requests_of_two_ttls(store, &server).await;
        // Two TTLs, and a round of each client that the window cuts.
        let most = 3 * (per_ttl(store, 1, 0) + clients as u64 * per_ttl(store, 0, each as u64));
        println!("{store}: {clients} clients with {each} waiters: {used} requests, at most {most}");
        assert!(used <= most, "{used} requests of {clients} clients with {each} waiters");
        waiters.shutdown().await;
        eventually("nobody waits", || async { waiting().await == 1 }).await;
        close(others).await;
    }
    assert!(guard.is_valid(), "waits of others cost the holder its lock");
}

/// The page's requests of a client in a TTL, at most; in a database without its looks.
fn per_ttl(store: &str, held: u64, waiters: u64) -> u64 {
    match store {
        // And a list of its names in a minute.
        "etcd" => 3 + 1,
        "redis" => 3 * (held + 5 * waiters).div_ceil(1000),
        "postgres" => 3 * (held + waiters).div_ceil(500),
        "mysql" => 8 * (held + waiters).div_ceil(500),
        _ => 16 + waiters,
    }
}

async fn requests_of_two_ttls(store: &str, server: &Server) -> u64 {
    // What is new is looked at more often for a moment.
    tokio::time::sleep(Duration::from_secs(2)).await;
    let before = server.counters().await.unwrap();
    tokio::time::sleep(2 * TTL).await;
    let since = server.counters().await.unwrap().since(&before);
    since.iter().filter(|(what, _)| is_request(store, what)).map(|(_, count)| count).sum()
}

async fn close(clients: Vec<Locks>) {
    for locks in clients {
        locks.close().await.unwrap();
    }
}
