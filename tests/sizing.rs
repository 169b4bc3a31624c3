//! The figures of `docs/sizing.md`: connections and requests of clients that hold and wait.
#![cfg(any(feature = "etcd", feature = "redis", feature = "zookeeper"))]

use std::time::Duration;

use distlock::Locks;
use lock_core::keep::renewal::{RENEWALS_PER_TTL, RENEWALS_WITHOUT_PUSHES};
use lock_lab::{Proxy, Server};
use tokio::task::JoinSet;

use crate::{
    leaks::is_request,
    support::{connect, eventually, start},
};

const PAGE: &str = include_str!("../docs/sizing.md");
const TTL: Duration = Duration::from_secs(6);
const NAME: &str = "sized";

on_every_server!(waiters_cost_what_the_page_says);

#[test]
fn the_page_shows_the_renewals() {
    for (stores, renewals) in
        [("etcd, Redis, PostgreSQL", RENEWALS_PER_TTL), ("SQLite, MySQL", RENEWALS_WITHOUT_PUSHES)]
    {
        let rates = [5.0, 30.0, 300.0].map(|ttl| format!("{:.2}", f64::from(renewals) / ttl));
        let row = format!("| {stores} | {} |", rates.join(" | "));
        assert!(PAGE.contains(&row), "not on the page: {row}");
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

/// The page's requests of a client in a TTL.
fn per_ttl(store: &str, held: u64, waiters: u64) -> u64 {
    match store {
        // And a list of its names in a minute.
        "etcd" => 3 + 1,
        "redis" => 3 * (held + 5 * waiters).div_ceil(1000),
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
