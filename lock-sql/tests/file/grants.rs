//! When a lock was granted, and a file of the version that did not record it.

use std::path::Path;

use lock_sql::{
    Dialect,
    client::{AssertSqlSafe, Connection, SqliteConnection, raw_sql, sqlite::SqliteConnectOptions},
};

use crate::{
    file::locks,
    support::grants::{self, OLD, old_entry},
};

async fn sql(path: &Path, statement: &str) {
    let options = SqliteConnectOptions::new().filename(path);
    let mut raw = SqliteConnection::connect_with(&options).await.unwrap();
    raw_sql(AssertSqlSafe(statement.to_owned())).execute(&mut raw).await.unwrap();
    raw.close().await.unwrap();
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_wait_does_not_count_as_hold() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("locks.db");
    grants::a_wait_does_not_count_as_hold(locks(&path).await, locks(&path).await).await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_lock_left_at_once_is_dated() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("locks.db");
    grants::a_lock_left_at_once_is_dated(locks(&path).await, locks(&path).await).await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn every_kind_granted_at_once_is_dated() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("locks.db");
    grants::every_kind_granted_at_once_is_dated(locks(&path).await, locks(&path).await).await;
}

/// An old client that holds a lock meanwhile goes on, and so does one that comes later.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_file_of_an_old_client_gets_the_column() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("locks.db");
    drop(locks(&path).await);
    sql(&path, OLD).await;
    let (before, later) = ("0a".repeat(16), "0b".repeat(16));
    sql(&path, &old_entry(Dialect::Sqlite, &before)).await;
    let new = locks(&path).await;
    for attempt in [&before, &later] {
        if attempt == &later {
            sql(&path, "UPDATE distlock_v1_slots SET token = token + 1").await;
            sql(&path, &old_entry(Dialect::Sqlite, &later)).await;
        }
        let leave = format!("DELETE FROM distlock_v1_entries WHERE attempt = x'{attempt}'");
        grants::beside_an_old_client(new.clone(), async || sql(&path, &leave).await).await;
    }
}

/// A file of an old client takes the place of the one in use.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn an_old_file_may_replace_a_new_one() {
    let folder = tempfile::tempdir().unwrap();
    let (path, old) = (folder.path().join("locks.db"), folder.path().join("old.db"));
    drop(locks(&old).await);
    sql(&old, OLD).await;
    let new = locks(&path).await;
    new.lock("a").unwrap().acquire().await.unwrap().release().await.unwrap();
    for companion in ["locks.db-wal", "locks.db-shm"] {
        let _ = std::fs::remove_file(folder.path().join(companion));
    }
    std::fs::rename(&old, &path).unwrap();
    let guard = new.lock("a").unwrap().acquire().await.unwrap();
    assert!(new.inspect("a").await.unwrap()[0].holder.granted_at.is_some());
    guard.release().await.unwrap();
}

/// The next connection adds the column again.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn the_column_may_be_lost() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("locks.db");
    let (a, b) = (locks(&path).await, locks(&path).await);
    grants::the_column_may_be_lost(a.clone(), b.clone(), async || sql(&path, OLD).await).await;
    for locks in [&a, &b] {
        grants::dated_again(locks).await;
    }
}
