//! Waits in vain.

use std::time::Duration;

use lock_core::Error;
use sqlx::{Connection, SqliteConnection, raw_sql};

use crate::{file::locks, support};

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn waits_in_vain_end_together() {
    let _turn = support::turn().await;
    let directory = tempfile::tempdir().unwrap();
    let locks = locks(&directory.path().join("locks.db")).await;
    support::vain::waits_in_vain_end_together(locks).await;
}

/// Another connection writes into the file: it answers reads, and takes no entry.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_file_that_takes_no_writes_is_an_outage_and_no_busy_lock() {
    let _turn = support::turn().await;
    let directory = tempfile::tempdir().unwrap();
    let path = directory.path().join("locks.db");
    let locks = locks(&path).await;
    let guard = locks.lock("held").unwrap().acquire().await.unwrap();
    let mut other = SqliteConnection::connect(&format!("sqlite:{}", path.display())).await.unwrap();
    raw_sql("BEGIN IMMEDIATE").execute(&mut other).await.unwrap();
    let wait = |name: &str| locks.lock(name).unwrap().wait(Duration::from_millis(300)).acquire();
    let free = wait("free").await.unwrap_err();
    assert!(matches!(free, Error::Unavailable { op: "acquire", .. }), "{free:?}");
    assert!(free.to_string().contains("locked"), "{free}");
    let held = wait("held").await.unwrap_err();
    assert!(matches!(held, Error::WaitTimeout { holder: Some(_), .. }), "{held:?}");
    let ping = locks.ping().await.unwrap_err();
    assert!(matches!(ping, Error::Unavailable { op: "ping", .. }), "{ping:?}");
    raw_sql("ROLLBACK").execute(&mut other).await.unwrap();
    locks.ping().await.unwrap();
    locks.lock("free").unwrap().acquire().await.unwrap().release().await.unwrap();
    drop(guard);
}
