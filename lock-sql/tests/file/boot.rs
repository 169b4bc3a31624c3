//! A file from another boot of the machine, and from another time namespace. A test can have
//! neither, so it alters the file.

use std::path::Path;

use lock_core::Error;
use lock_sql::client::{self, Connection, SqliteConnection, sqlite::SqliteConnectOptions};

use crate::file::{driver, locks};

async fn alter(path: &Path, statement: &'static str) {
    let options = SqliteConnectOptions::new().filename(path);
    let mut raw = SqliteConnection::connect_with(&options).await.unwrap();
    assert_eq!(client::query(statement).execute(&mut raw).await.unwrap().rows_affected(), 1);
}

#[tokio::test]
async fn rows_of_another_boot_are_removed_and_tokens_jump() {
    let directory = tempfile::tempdir().unwrap();
    let path = directory.path().join("locks.db");
    let before = locks(&path).await;
    let guard = before.lock("a").unwrap().acquire().await.unwrap();
    alter(&path, "UPDATE distlock_v1_meta SET boot = 'another'").await;
    let after = locks(&path).await;
    let next = after.lock("a").unwrap().try_acquire().await.unwrap().expect("a lock of no boot");
    // A power cut may have undone the last transactions, and each of them may have granted a token.
    assert!(next.token().value() > guard.token().value() + (1 << 30));
    let token = next.token().value();
    next.release().await.unwrap();
    // Tokens jump only once.
    let again = locks(&path).await.lock("a").unwrap().acquire().await.unwrap();
    assert_eq!(again.token().value(), token + 1);
}

#[tokio::test]
async fn a_file_of_another_time_namespace_is_refused() {
    let directory = tempfile::tempdir().unwrap();
    let path = directory.path().join("locks.db");
    driver(&path).await.unwrap();
    alter(&path, "UPDATE distlock_v1_meta SET clock = '1'").await;
    let error = driver(&path).await.unwrap_err();
    assert!(matches!(error, Error::Rejected { .. }), "{error:?}");
    assert!(error.to_string().contains("time namespace"), "{error}");
}
