//! Locks with a TTL so short that a busy machine would end them.

use std::time::Duration;

use lock_lab::Proxy;
use lock_sql::{
    Dialect,
    client::{AssertSqlSafe, Connection, MySqlConnection, raw_sql},
};

use crate::servers::{Database, locks, undisturbed::undisturbed};

/// The sweep of a client that has just come reads all rows.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_row_that_is_locked_ends_no_short_lock_of_another_client() {
    const SHORT: Duration = Duration::from_secs(1);
    let server = Database::start(Dialect::MySql).await;
    let one = locks(&server.url()).await;
    let victim = one.lock("victim").unwrap().ttl(SHORT * 60).acquire().await.unwrap();
    let mut other = MySqlConnection::connect(&server.url()).await.unwrap();
    // By its whole key: else the gaps beside the row are locked, too.
    let lock = format!(
        "BEGIN; SELECT * FROM distlock_v1_entries WHERE name = 'victim' AND token = {} FOR UPDATE",
        victim.token()
    );
    raw_sql(AssertSqlSafe(lock)).execute(&mut other).await.unwrap();
    // It ends if the machine stands still between two renewals.
    undisturbed(SHORT / 4, async || {
        let two = locks(&server.url()).await;
        let guard = two.lock("mine").unwrap().ttl(SHORT).acquire().await.unwrap();
        // Its first renewal sweeps.
        match tokio::time::timeout(SHORT * 3, guard.lost()).await {
            Ok(lost) => Err(format!("{lost:?}")),
            Err(_) => guard.release().await.map_err(|error| error.to_string()),
        }
    })
    .await;
    other.close().await.unwrap();
    victim.release().await.unwrap();
}

/// Ten requests renew the long ones, each of which takes a while.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_short_lock_is_renewed_between_the_requests_for_a_crowd() {
    const LONG: Duration = Duration::from_secs(15);
    const SHORT: Duration = Duration::from_secs(2);
    if !lock_lab::in_a_long_run() {
        return;
    }
    let server = Database::start(Dialect::Postgres).await;
    let proxy = Proxy::start(server.addr()).await.unwrap();
    let locks = locks(&server.url_via(&proxy)).await;
    let mut crowd = Vec::new();
    for hundred in 0..50 {
        let names: Vec<_> = (0..100).map(|n| format!("{hundred}/{n}")).collect();
        let set = locks.all(names).unwrap().ttl(LONG).try_acquire().await.unwrap();
        crowd.push(set.expect("a free set"));
    }
    proxy.delay(Duration::from_millis(150));
    undisturbed(SHORT / 4, async || {
        let short = locks.lock("short").unwrap().ttl(SHORT).acquire().await.unwrap();
        match tokio::time::timeout(LONG, short.lost()).await {
            Ok(lost) => Err(format!("{lost:?}")),
            Err(_) => Ok(()),
        }
    })
    .await;
}
