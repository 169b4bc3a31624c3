//! How many connections a client has, and for how long.

use std::time::Duration;

use lock_lab::Proxy;
use lock_sql::Dialect;

use crate::servers::{Database, eventually, locks, on_both};

on_both!(connections_that_are_not_needed_end);

/// How many connections clients have.
pub(super) async fn clients(server: &Database) -> u64 {
    let count = match server {
        Database::Postgres(_) => {
            "SELECT count(*) FROM pg_stat_activity WHERE application_name = 'distlock'"
        }
        Database::MariaDb(_) => {
            "SELECT count(*) FROM information_schema.processlist \
             WHERE user = 'lab' AND id <> connection_id()"
        }
    };
    server.sql(count).await.trim().parse().unwrap()
}

async fn connections_that_are_not_needed_end(dialect: Dialect) {
    let server = Database::start(dialect).await;
    let proxy = Proxy::start(server.addr()).await.unwrap();
    let locks = locks(&server.url_via(&proxy)).await;
    // So that they need connections at the same time.
    proxy.delay(Duration::from_millis(50));
    let burst = (0..40).map(|n| tokio::spawn(locks.lock(format!("{n}")).unwrap().acquire()));
    for acquired in burst.collect::<Vec<_>>() {
        acquired.await.unwrap().unwrap().release().await.unwrap();
    }
    assert!(clients(&server).await > 2);
    // One for requests, and PostgreSQL's for pushes.
    let few = if dialect == Dialect::Postgres { 2 } else { 1 };
    eventually("few are left", async || clients(&server).await <= few).await;
    locks.lock("a").unwrap().acquire().await.unwrap().release().await.unwrap();
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_client_that_holds_nothing_does_not_listen() {
    let server = Database::start(Dialect::Postgres).await;
    let locks = locks(&server.url()).await;
    for _ in 0..20 {
        locks.names("").await.unwrap();
        assert_eq!(clients(&server).await, 1);
    }
    let guard = locks.lock("a").unwrap().acquire().await.unwrap();
    eventually("it listens", async || clients(&server).await == 2).await;
    guard.release().await.unwrap();
}
