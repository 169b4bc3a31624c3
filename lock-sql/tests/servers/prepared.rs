//! Statements that sessions of PostgreSQL plan once, and sessions that have lost them.

use std::time::Duration;

use lock_core::Locks;
use lock_lab::PgBouncer;
use lock_sql::{
    Dialect,
    client::{AssertSqlSafe, Connection, PgConnection, raw_sql},
};

use crate::{
    servers::{Database, locks},
    support::{contend::acquire, eventually},
};

const TIMES: u64 = 40;

/// Has the session itself note at the end of each acquire and each release what it has prepared.
async fn note(server: &Database, then: &str) {
    let note = format!(
        "CREATE TABLE noted (statements BIGINT, generic BIGINT, custom BIGINT);
        CREATE FUNCTION note() RETURNS trigger LANGUAGE plpgsql AS $$ BEGIN
            INSERT INTO noted SELECT count(*), coalesce(sum(generic_plans), 0),
                coalesce(sum(custom_plans), 0) FROM pg_prepared_statements;
            {then}
            RETURN NULL;
        END $$;
        CREATE CONSTRAINT TRIGGER note AFTER INSERT OR DELETE ON distlock_v1_entries
            DEFERRABLE INITIALLY DEFERRED FOR EACH ROW EXECUTE FUNCTION note();"
    );
    server.sql(&note).await;
}

async fn noted(server: &Database, what: &str) -> u64 {
    let noted = server.sql(&format!("SELECT {what} FROM noted")).await;
    noted.trim().parse().unwrap()
}

async fn pair(locks: &Locks, name: &str) {
    acquire(locks, name).await.release().await.unwrap();
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_statement_is_planned_once_for_all_values() {
    let server = Database::start(Dialect::Postgres).await;
    let locks = locks(&server.url()).await;
    pair(&locks, "a").await;
    note(&server, "").await;
    for n in 0..TIMES {
        let lock = locks.lock(format!("{n}")).unwrap().ttl(Duration::from_secs(20 + n));
        lock.acquire().await.unwrap().release().await.unwrap();
    }
    assert_eq!(noted(&server, "count(*)").await, TIMES * 2);
    assert!(noted(&server, "min(statements)").await > 0);
    assert!(noted(&server, "max(statements)").await < TIMES, "a value makes another statement");
    assert!(noted(&server, "max(generic)").await > TIMES);
    assert_eq!(noted(&server, "max(custom)").await, 0);
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn behind_a_pooler_nothing_is_prepared() {
    let server = Database::start(Dialect::Postgres).await;
    let pooler =
        PgBouncer::before(&server.url()).line("pool_mode = session").start().await.unwrap();
    let locks = locks(&format!("{}?pooler=session", pooler.url())).await;
    pair(&locks, "a").await;
    note(&server, "").await;
    pair(&locks, "a").await;
    assert_eq!(noted(&server, "count(*)").await, 2);
    assert_eq!(noted(&server, "max(statements)").await, 0);
}

/// As after a `DISCARD ALL`. Each message takes effect once.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_session_that_has_forgotten_its_statements_is_told_them_again() {
    let server = Database::start(Dialect::Postgres).await;
    let locks = locks(&server.url()).await;
    pair(&locks, "a").await;
    note(&server, "DEALLOCATE ALL;").await;
    let mut last = None;
    for _ in 0..5 {
        let held = acquire(&locks, "a").await;
        assert!(Some(held.token()) > last);
        last = Some(held.token());
        held.renew().await.unwrap();
        held.release().await.unwrap();
    }
    assert_eq!(noted(&server, "count(*)").await, 10);
    assert!(noted(&server, "min(statements)").await > 0);
    assert_eq!(server.entries().await, 0);
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_new_session_is_told_all_statements() {
    let server = Database::start(Dialect::Postgres).await;
    let locks = locks(&server.url()).await;
    let held = acquire(&locks, "a").await;
    let end = "SELECT count(pg_terminate_backend(pid, 5000)) FROM pg_stat_activity \
               WHERE application_name = 'distlock'";
    for _ in 0..3 {
        assert_ne!(server.sql(end).await.trim(), "0");
        held.renew().await.unwrap();
    }
    held.release().await.unwrap();
    pair(&locks, "a").await;
    assert_eq!(server.entries().await, 0);
}

/// The server refuses a prepared statement whose rows would have another type.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_column_of_another_type_costs_no_lock() {
    let server = Database::start(Dialect::Postgres).await;
    let locks = locks(&server.url()).await;
    let held = acquire(&locks, "a").await;
    held.renew().await.unwrap();
    let change = "CREATE DOMAIN heft AS BIGINT; \
                  ALTER TABLE distlock_v1_entries ALTER COLUMN weight TYPE heft";
    server.sql(change).await;
    held.renew().await.unwrap();
    held.release().await.unwrap();
    pair(&locks, "a").await;
    assert_eq!(server.entries().await, 0);
}

/// To a statement that has looked before it waited, a table that was rewritten meanwhile is empty.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_table_that_is_rewritten_costs_no_lock_and_no_token() {
    let server = Database::start(Dialect::Postgres).await;
    let locks = locks(&server.url()).await;
    let mut last = acquire(&locks, "a").await;
    for table in ["slots", "entries"] {
        last.renew().await.unwrap();
        let token = last.token();
        last.release().await.unwrap();
        let held = acquire(&locks, "b").await;
        held.renew().await.unwrap();
        let mut other = PgConnection::connect(&server.url()).await.unwrap();
        let rewrite = format!("BEGIN; ALTER TABLE distlock_v1_{table} SET UNLOGGED");
        raw_sql(AssertSqlSafe(rewrite)).execute(&mut other).await.unwrap();
        let again = tokio::spawn(locks.lock("a").unwrap().acquire());
        let renewed = tokio::spawn(async move {
            held.renew().await.unwrap();
            held
        });
        let waiting = "SELECT count(*) FROM pg_stat_activity \
                       WHERE application_name = 'distlock' AND wait_event_type = 'Lock'";
        eventually("both wait", async || server.sql(waiting).await.trim() == "2").await;
        raw_sql("COMMIT").execute(&mut other).await.unwrap();
        last = again.await.unwrap().unwrap();
        assert!(last.token() > token, "{table}: {} after {token}", last.token());
        renewed.await.unwrap().release().await.unwrap();
        other.close().await.unwrap();
    }
    last.release().await.unwrap();
}
