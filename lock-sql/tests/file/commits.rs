//! The program's own transactions in the file of the locks, which are committed only while a lock
//! is held.

use std::path::Path;

use lock_core::{Error, Held, Locks, Result};
use lock_sql::{
    CommitHeld, Dialect,
    client::{
        self, AssertSqlSafe, raw_sql,
        sqlite::{SqliteConnectOptions, SqlitePool, SqlitePoolOptions},
    },
    schema,
};

use crate::{file::locks, support::contend::acquire};

/// A program with one connection to a file, and a table `numbers` there.
async fn program(path: &Path) -> SqlitePool {
    let options = SqliteConnectOptions::new().filename(path).create_if_missing(true);
    let pool = SqlitePoolOptions::new().max_connections(1).connect_with(options).await.unwrap();
    raw_sql("CREATE TABLE numbers (n)").execute(&pool).await.unwrap();
    pool
}

async fn insert(pool: &SqlitePool, number: i64, held: &Held) -> Result<()> {
    let mut open = pool.begin_with("BEGIN IMMEDIATE").await.unwrap();
    let insert = client::query("INSERT INTO numbers VALUES ($1)").bind(number);
    insert.execute(&mut *open).await.unwrap();
    held.commit(open).await
}

async fn numbers(pool: &SqlitePool) -> Vec<i64> {
    client::query_scalar("SELECT n FROM numbers ORDER BY n").fetch_all(pool).await.unwrap()
}

async fn revoke(operator: &Locks, name: &str) {
    let attempt = operator.inspect(name).await.unwrap()[0].attempt.unwrap();
    assert!(operator.revoke(name, attempt).await.unwrap());
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_commit_is_made_only_while_the_lock_is_held() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("shop.db");
    let pool = program(&path).await;
    let (own, operator) = (locks(&path).await, locks(&path).await);
    let guard = acquire(&own, "a").await;
    insert(&pool, 1, &guard).await.unwrap();
    guard.renew().await.unwrap();
    insert(&pool, 2, &guard).await.unwrap();
    revoke(&operator, "a").await;
    let late = insert(&pool, 3, &guard).await.unwrap_err();
    assert!(late.is_lost(), "{late:?}");
    let next = acquire(&operator, "a").await;
    let late = insert(&pool, 4, &guard).await.unwrap_err();
    assert!(late.is_lost(), "{late:?}");
    insert(&pool, 5, &next).await.unwrap();
    assert_eq!(numbers(&pool).await, [1, 2, 5]);
    next.release().await.unwrap();
}

/// A file that is attached commits by itself, so the lock must be in the main one.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_transaction_of_another_file_is_refused() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("locks.db");
    let own = locks(&path).await;
    let pool = program(&folder.path().join("shop.db")).await;
    let guard = acquire(&own, "a").await;
    let attach = AssertSqlSafe(format!("ATTACH '{}' AS locks", path.display()));
    for change in [raw_sql(attach), raw_sql(AssertSqlSafe(schema(Dialect::Sqlite)))] {
        change.execute(&pool).await.unwrap();
        let refused = insert(&pool, 1, &guard).await.unwrap_err();
        assert!(matches!(refused, Error::InvalidOption { .. }), "{refused:?}");
        assert!(refused.to_string().contains("the database and the schema"), "{refused}");
    }
    assert!(numbers(&pool).await.is_empty());
    guard.release().await.unwrap();
}
