//! PostgreSQL behind a PgBouncer that the URL names, in both of its modes.

use std::time::Duration;

use lock_core::LossReason;
use lock_lab::PgBouncer;
use lock_sql::{
    Dialect,
    client::{Connection, PgConnection, Row, postgres::PgConnectOptions, raw_sql},
};

use crate::{
    servers::{Database, bounded::bounded, eventually, locks, pushes::a_release_wakes},
    support::contend::{acquire, contend},
};

const MODES: [&str; 2] = ["session", "transaction"];
/// Well below the pause until the next renewal, and until the slow look of a client that is pushed.
const SOON: Duration = Duration::from_secs(2);

/// A pooler in this mode, with more lines of its configuration.
async fn pooler(server: &Database, mode: &str, more: &str) -> PgBouncer {
    let builder = PgBouncer::before(&server.url()).line(format!("pool_mode = {mode}"));
    builder.line(more).start().await.unwrap()
}

fn url(pooler: &PgBouncer, mode: &str) -> String {
    format!("{}?pooler={mode}", pooler.url())
}

/// A connection of another program.
async fn stranger(pooler: &PgBouncer) -> PgConnection {
    let options: PgConnectOptions = pooler.url().parse().unwrap();
    PgConnection::connect_with(&options.extra_float_digits(None::<i8>)).await.unwrap()
}

async fn nothing_is_left(server: &Database) {
    eventually("nothing is left", async || server.entries().await == 0).await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn clients_behind_it_and_beside_it_exclude_and_wake_each_other() {
    for mode in MODES {
        let server = Database::start(Dialect::Postgres).await;
        let pooler = pooler(&server, mode, "").await;
        let [one, other] = [locks(&url(&pooler, mode)).await, locks(&url(&pooler, mode)).await];
        let direct = locks(&server.url()).await;
        contend(&one, &other).await;
        contend(&one, &direct).await;
        a_release_wakes(&server, &one, &direct, 5).await;
        a_release_wakes(&server, &direct, &one, 5).await;
        nothing_is_left(&server).await;
    }
}

/// It has what the page's file says.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn clients_exclude_each_other_with_the_settings_of_the_page() {
    const PAGE: &str = include_str!("../../../docs/stores/sql.md");
    let file = PAGE.split("```ini\n[pgbouncer]\n").nth(1);
    let lines = file.and_then(|rest| rest.split("```").next()).unwrap();
    let server = Database::start(Dialect::Postgres).await;
    let pooler = PgBouncer::before(&server.url()).line(lines).start().await.unwrap();
    let url = url(&pooler, "transaction");
    contend(&locks(&url).await, &locks(&url).await).await;
    nothing_is_left(&server).await;
}

/// With one session for all, each message meets what the other program has set.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn what_other_programs_have_set_in_a_session_does_not_count() {
    const SET: &str = "SET search_path = elsewhere; SET synchronous_commit = off; \
        SET default_transaction_isolation = serializable; SET ROLE elsewhere";
    let server = Database::start(Dialect::Postgres).await;
    server.sql("CREATE SCHEMA elsewhere; CREATE ROLE elsewhere; GRANT elsewhere TO lab").await;
    let pooler = pooler(&server, "transaction", "default_pool_size = 1").await;
    let [here, direct] = [locks(&url(&pooler, "transaction")).await, locks(&server.url()).await];
    let mut stranger = stranger(&pooler).await;
    raw_sql(SET).execute(&mut stranger).await.unwrap();
    let held = acquire(&here, "a").await;
    assert!(direct.lock("a").unwrap().try_acquire().await.unwrap().is_none());
    held.renew().await.unwrap();
    held.release().await.unwrap();
    let set = raw_sql("SHOW search_path").fetch_one(&mut stranger).await.unwrap();
    assert_eq!(set.get::<String, _>(0), "elsewhere", "it is still set for others");
    nothing_is_left(&server).await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_kill_of_the_pooler_costs_no_lock_and_no_place() {
    for mode in MODES {
        let server = Database::start(Dialect::Postgres).await;
        let pooler = pooler(&server, mode, "").await;
        let [here, there] = [locks(&url(&pooler, mode)).await, locks(&url(&pooler, mode)).await];
        let held = acquire(&here, "a").await;
        let waits = tokio::spawn(there.lock("a").unwrap().acquire());
        eventually("a waiter", async || server.entries().await == 2).await;
        for _ in 0..3 {
            pooler.restart().await.unwrap();
            held.renew().await.unwrap();
        }
        pooler.kill();
        let release = tokio::spawn(held.release());
        pooler.restart().await.unwrap();
        release.await.unwrap().unwrap();
        let next = waits.await.unwrap().unwrap();
        assert!(next.is_valid());
        next.release().await.unwrap();
        nothing_is_left(&server).await;
    }
}

/// A transaction of another program has the only session.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn requests_that_wait_too_long_for_a_session_cost_no_lock() {
    let server = Database::start(Dialect::Postgres).await;
    let few = "default_pool_size = 1\nquery_wait_timeout = 1";
    let pooler = pooler(&server, "transaction", few).await;
    let url = url(&pooler, "transaction");
    let [here, there] = [locks(&url).await, locks(&url).await];
    let held = acquire(&here, "a").await;
    let waits = tokio::spawn(there.lock("a").unwrap().acquire());
    eventually("a waiter", async || server.entries().await == 2).await;
    let mut stranger = stranger(&pooler).await;
    raw_sql("BEGIN").execute(&mut stranger).await.unwrap();
    let refused = async || pooler.log().contains("query_wait_timeout");
    eventually("requests are refused", refused).await;
    raw_sql("COMMIT").execute(&mut stranger).await.unwrap();
    held.renew().await.unwrap();
    held.release().await.unwrap();
    waits.await.unwrap().unwrap().release().await.unwrap();
    nothing_is_left(&server).await;
}

/// The message of one lock finds it. The renewals of the other one would come in 7 s or later.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn another_database_behind_it_ends_all_locks_at_once() {
    const TTL: Duration = Duration::from_secs(60);
    for mode in MODES {
        let server = Database::start(Dialect::Postgres).await;
        server.spoil();
        server.sql_as_admin("CREATE DATABASE other OWNER lab").await;
        let other = format!("{}other", server.url().strip_suffix("lab").unwrap());
        let direct = locks(&other).await;
        let pooler = pooler(&server, mode, "").await;
        let here = locks(&url(&pooler, mode)).await;
        let hold = async |name: &str| here.lock(name).unwrap().ttl(TTL).acquire().await.unwrap();
        let (asks, silent) = (hold("asks").await, hold("silent").await);
        asks.renew().await.unwrap();
        pooler.lead_to(&other).unwrap();
        if mode == "session" {
            // Sessions that clients have stay where they are.
            pooler.restart().await.unwrap();
        }
        eventually("the one that asks is lost", async || {
            asks.renew().await.is_err_and(|error| error.is_lost())
        })
        .await;
        let lost = bounded("the other one is lost, too", SOON, silent.lost()).await;
        assert_eq!(lost, LossReason::Failover);
        let again = hold("asks").await;
        assert!(direct.lock("asks").unwrap().try_acquire().await.unwrap().is_none());
        again.renew().await.unwrap();
        again.release().await.unwrap();
    }
}
