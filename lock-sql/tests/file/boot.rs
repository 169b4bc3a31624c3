//! A file from another boot of the machine, and from another time namespace. A test can have
//! neither, so it alters the file. A boot id of its own has a process in a container.

use std::{fs, path::Path};

use lock_core::Error;
use lock_sql::client::{self, Connection, SqliteConnection, sqlite::SqliteConnectOptions};

use crate::file::{child, driver, locks};

/// Later than a machine runs.
const LATER: u64 = 1 << 60;

async fn alter(path: &Path, statement: &str) {
    let options = SqliteConnectOptions::new().filename(path);
    let mut raw = SqliteConnection::connect_with(&options).await.unwrap();
    let statement = client::AssertSqlSafe(statement.to_owned());
    assert_eq!(client::query(statement).execute(&mut raw).await.unwrap().rows_affected(), 1);
}

#[tokio::test]
async fn tokens_jump_once_at_each_boot() {
    let directory = tempfile::tempdir().unwrap();
    let path = directory.path().join("locks.db");
    let before = locks(&path).await.lock("a").unwrap().acquire().await.unwrap().token();
    alter(&path, "UPDATE distlock_v1_meta SET boot = 'another'").await;
    let next = locks(&path).await.lock("b").unwrap().acquire().await.unwrap();
    // A power cut may have undone the last transactions, and each of them may have granted a token.
    assert!(next.token().value() > before.value() + (1 << 30));
    let token = next.token().value();
    let again = locks(&path).await.lock("c").unwrap().acquire().await.unwrap();
    assert_eq!(again.token().value(), token + 1);
}

/// By the clock of an earlier boot, it would block the name for as long as the machine ran then.
#[tokio::test]
async fn an_entry_that_outlives_its_ttl_is_of_an_earlier_boot() {
    let directory = tempfile::tempdir().unwrap();
    let path = directory.path().join("locks.db");
    let guard = locks(&path).await.lock("a").unwrap().acquire().await.unwrap();
    alter(&path, &format!("UPDATE distlock_v1_entries SET expires = {LATER}")).await;
    let next = locks(&path).await.lock("a").unwrap().try_acquire().await.unwrap();
    assert!(next.expect("a lock of no boot").token() > guard.token());
}

/// The host and its container each have a boot id, and one clock.
#[test]
fn a_container_with_a_boot_id_of_its_own_ends_no_locks() {
    let directory = tempfile::tempdir().unwrap();
    let (file, id) = (directory.path().join("locks.db"), directory.path().join("id"));
    fs::write(&id, "11111111-2222-4333-8444-555555555555\n").unwrap();
    let url = format!("sqlite:{}", file.display());
    let mount = format!("mount --bind {} /proc/sys/kernel/random/boot_id", id.display());
    let mut host = child::start("hold", &url, |_| {});
    let token: u64 = host.says().parse().unwrap();
    let mut inside = child::start_behind(&mount, "try", &url);
    assert_eq!(inside.says(), "busy");
    let mut beside = child::start("try", &url, |_| {});
    assert_eq!(beside.says(), "busy");
    host.go();
    assert_eq!(host.says(), "released");
    inside.go();
    let next: u64 = inside.says().parse().unwrap();
    assert!(next > token, "{next} after {token}");
    for other in [host, inside, beside] {
        other.ends();
    }
    // The other way round.
    let mut inside = child::start_behind(&mount, "hold", &url);
    let held: u64 = inside.says().parse().unwrap();
    assert_eq!(held, next + 1, "both boots are known");
    let mut beside = child::start("try", &url, |_| {});
    assert_eq!(beside.says(), "busy");
    beside.ends();
    inside.ends();
}

#[tokio::test]
async fn a_file_of_another_time_namespace_is_refused() {
    let directory = tempfile::tempdir().unwrap();
    let path = directory.path().join("locks.db");
    let guard = locks(&path).await.lock("a").unwrap().acquire().await.unwrap();
    for other in
        ["UPDATE distlock_v1_meta SET clock = '1'", "UPDATE distlock_v1_meta SET boot = ''"]
    {
        alter(&path, other).await;
        let error = driver(&path).await.unwrap_err();
        assert!(matches!(error, Error::Rejected { .. }), "{error:?}");
        assert!(error.to_string().contains("time namespace"), "{error}");
    }
    guard.release().await.unwrap();
}
