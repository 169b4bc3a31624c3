//! A process that is killed while it writes.

use std::time::Duration;

use lock_core::FencingToken;
use lock_sql::client::{self, Connection, SqliteConnection, sqlite::SqliteConnectOptions};

use crate::file::{child, locks};

const PATIENCE: Duration = Duration::from_secs(60);

/// The file is whole, the lock is free within its TTL, and tokens go on rising.
#[tokio::test]
async fn kill_9_in_the_middle_of_writing_leaves_a_usable_file() {
    let directory = tempfile::tempdir().unwrap();
    let path = directory.path().join("locks.db");
    let mut greatest = FencingToken::new(0);
    for round in 0..5 {
        let mut other = child::start("hurry", path.to_str().unwrap(), |_| {});
        for _ in 0..50 + round {
            let token = FencingToken::new(other.says().parse().unwrap());
            assert!(token > greatest, "token {token} after {greatest}");
            greatest = token;
        }
        other.kill();
    }
    let mut raw =
        SqliteConnection::connect_with(&SqliteConnectOptions::new().filename(&path)).await.unwrap();
    let check = client::query_scalar("PRAGMA integrity_check").fetch_one(&mut raw);
    let check: String = check.await.unwrap();
    assert_eq!(check, "ok");
    let locks = locks(&path).await;
    let lock = locks.lock("hurry").unwrap().ttl(Duration::from_secs(1));
    let guard = tokio::time::timeout(PATIENCE, lock.acquire()).await;
    let guard = guard.expect("a killed holder's lock is free after its TTL").unwrap();
    assert!(guard.token() > greatest);
    guard.release().await.unwrap();
}
