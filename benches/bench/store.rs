//! The stores of a run, and their counters.

use distlock::Store;
use lock_lab::{AnyStore, Counters};

/// The stores that are compiled in, or the ones of them that the command line names.
pub fn all() -> Vec<&'static str> {
    let compiled_in = distlock::STORES.iter().filter(|store| store.compiled_in);
    // The store in this process sends no requests.
    let all = compiled_in.map(|store| store.scheme).filter(|scheme| *scheme != "memory");
    let named: Vec<_> = std::env::args().skip(1).filter(|arg| !arg.starts_with('-')).collect();
    let schemes = named.iter().filter_map(|name| Some(Store::of_scheme(name)?.scheme));
    let wanted: Vec<_> = schemes.collect();
    let chosen: Vec<_> = all.filter(|store| named.is_empty() || wanted.contains(store)).collect();
    if chosen.is_empty() {
        println!("none of the stores {named:?} is compiled in: --features all");
    }
    chosen
}

/// The server's counters. SQLite has none.
pub async fn counters(store: &AnyStore) -> Counters {
    match store.server() {
        Some(server) => server.counters().await.expect("counters"),
        None => Counters::default(),
    }
}

/// The clients' requests, or statements in a database.
pub fn requests(store: &str, since: &Counters) -> u64 {
    let of_clients = |what: &str| match store {
        // The server also counts the commands of scripts. Only the scripts come from clients.
        "redis" => ["cmd.evalsha", "cmd.eval", "cmd.ping", "cmd.subscribe"].contains(&what),
        "etcd" => what.starts_with("msg."),
        "zookeeper" => what == "packets_received",
        _ => what.starts_with("cmd."),
    };
    since.iter().filter(|(what, _)| of_clients(what)).map(|(_, count)| count).sum()
}

/// Requests per round on average, without etcd's renewals. `None` if the server does not count.
pub fn per_time(store: &str, since: &Counters, times: u64) -> Option<f64> {
    let count = requests(store, since) - since.get("msg.LeaseKeepAlive");
    (store != "sqlite").then(|| count as f64 / times.max(1) as f64)
}
