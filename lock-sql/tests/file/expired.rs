//! Entries that have expired, and that nobody has removed yet.

use std::time::Duration;

use lock_core::{Error, LossReason};
use lock_sql::client::{self, Connection, SqliteConnection};

use crate::file::locks;

/// The lock was free meanwhile, and anybody may have seen that.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn an_entry_that_has_expired_is_not_renewed() {
    let directory = tempfile::tempdir().unwrap();
    let path = directory.path().join("locks.db");
    let locks = locks(&path).await;
    let lock = |name: &str| locks.lock(name).unwrap().ttl(Duration::from_secs(60));
    let by_hand = lock("a").acquire().await.unwrap();
    // Its first renewal is soon.
    let by_time = lock("b").ttl(Duration::from_secs(9)).acquire().await.unwrap();
    let mut raw = SqliteConnection::connect(&format!("sqlite:{}", path.display())).await.unwrap();
    let expired = client::query("UPDATE distlock_v1_entries SET expires = 1");
    assert_eq!(expired.execute(&mut raw).await.unwrap().rows_affected(), 2);
    let renewed = by_hand.renew().await;
    assert!(
        matches!(renewed, Err(Error::Lost { reason: LossReason::EntryGone, .. })),
        "{renewed:?}"
    );
    let lost = tokio::time::timeout(Duration::from_secs(60), by_time.lost()).await;
    assert_eq!(lost.expect("it is renewed"), LossReason::EntryGone);
}
