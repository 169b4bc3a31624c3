//! A file that is deleted or replaced while it is in use.

use std::{
    fs::{self, File},
    os::unix::fs::MetadataExt,
    path::Path,
    time::Duration,
};

use lock_core::{Error, LossReason};
use lock_sql::client::{self, AssertSqlSafe, Connection, SqliteConnection};

use crate::file::{child, driver, eventually, locks, users::mode};

/// Renewed before it ends also if the machine stands still for a while.
const TTL: Duration = Duration::from_secs(12);

fn remove_all(folder: &Path) {
    for file in fs::read_dir(folder).unwrap() {
        fs::remove_file(file.unwrap().path()).unwrap();
    }
}

/// Whether this process has one of the folder's files open, also one that was removed.
fn has_open(folder: &Path) -> bool {
    let folder = fs::canonicalize(folder).unwrap();
    let links = fs::read_dir("/proc/self/fd").unwrap();
    // Other links come and go.
    let mut files = links.filter_map(|link| fs::read_link(link.ok()?.path()).ok());
    files.any(|file| file.starts_with(&folder))
}

/// The next client makes a new file and enters it: the holder in the old one is told.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn the_holder_in_a_deleted_file_is_told() {
    let folder = tempfile::tempdir().unwrap();
    let file = folder.path().join("db");
    let first = locks(&file).await;
    let guard = first.lock("a").unwrap().ttl(TTL).acquire().await.unwrap();
    remove_all(folder.path());
    let second = locks(&file).await;
    let other = second.lock("a").unwrap().acquire().await.unwrap();
    let lost = tokio::time::timeout(TTL, guard.lost()).await;
    assert_eq!(lost.expect("told within the TTL"), LossReason::EntryGone);
    // The first client goes on with the new file.
    other.release().await.unwrap();
    let again = first.lock("a").unwrap().try_acquire().await.unwrap();
    assert!(again.is_some());
}

/// No other client makes a new file.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_client_alone_goes_on_with_a_new_file() {
    let folder = tempfile::tempdir().unwrap();
    let locks = locks(&folder.path().join("db")).await;
    let guard = locks.lock("a").unwrap().ttl(TTL).acquire().await.unwrap();
    remove_all(folder.path());
    let lost = tokio::time::timeout(TTL, guard.lost()).await;
    assert_eq!(lost.expect("told within the TTL"), LossReason::EntryGone);
    assert!(locks.lock("a").unwrap().try_acquire().await.unwrap().is_some());
}

/// The client gets the same error as a new client, and goes on as soon as it can. Here the new file
/// has the number of the old one, since file systems reuse numbers.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_file_that_is_no_database_is_refused_until_it_is_replaced() {
    let folder = tempfile::tempdir().unwrap();
    let (file, old) = (folder.path().join("db"), folder.path().join("old"));
    let locks = locks(&file).await;
    let lock = locks.lock("a").unwrap();
    lock.acquire().await.unwrap().release().await.unwrap();
    let number = fs::metadata(&file).unwrap().ino();
    fs::rename(&file, &old).unwrap();
    for log in ["db-wal", "db-shm"] {
        fs::remove_file(folder.path().join(log)).unwrap();
    }
    fs::write(&file, "no database ".repeat(1000)).unwrap();
    let refused = lock.try_acquire().await.unwrap_err();
    assert!(matches!(refused, Error::Rejected { .. }), "{refused:?}");
    // The same error, except for the operation.
    let connect = driver(&file).await.unwrap_err().to_string();
    assert_eq!(refused.to_string(), connect.replace("rejected connect:", "rejected try_acquire:"));
    eventually("the old file is closed", async || !has_open(folder.path())).await;
    File::create(&old).unwrap();
    fs::rename(&old, &file).unwrap();
    assert_eq!(fs::metadata(&file).unwrap().ino(), number);
    assert!(lock.try_acquire().await.unwrap().is_some());
}

/// The user's own file is made again as it was: no other user may use it.
#[test]
fn the_users_own_file_is_made_again() {
    let home = tempfile::tempdir().unwrap();
    let folder = home.path().join("distlock");
    let mut other = child::start("try", "sqlite:", |command| {
        command.env("XDG_STATE_HOME", home.path());
    });
    let first = other.says();
    for remove in [remove_all as fn(&Path), |folder| fs::remove_dir_all(folder).unwrap()] {
        remove(&folder);
        other.go();
        assert_eq!(other.says(), first, "tokens start anew in a new file");
        assert_eq!((mode(&folder), mode(&folder.join("locks.db"))), (0o700, 0o600));
    }
    other.ends();
}

/// Makes a copy of the locks as they are now.
async fn back_up(file: &Path, copy: &Path) {
    let mut raw = SqliteConnection::connect(&format!("sqlite:{}", file.display())).await.unwrap();
    let into = AssertSqlSafe(format!("VACUUM INTO '{}'", copy.display()));
    client::query(into).execute(&mut raw).await.unwrap();
    raw.close().await.unwrap();
}

/// The file keeps its number, so only its log shows it. Without the log, the former clients and the
/// new ones would never see each other.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn the_holder_is_told_of_a_copy_that_is_restored_in_place() {
    let folder = tempfile::tempdir().unwrap();
    let (file, copy) = (folder.path().join("db"), folder.path().join("copy"));
    let (first, beside) = (locks(&file).await, locks(&file).await);
    back_up(&file, &copy).await;
    let guard = first.lock("shared").unwrap().ttl(TTL).acquire().await.unwrap();
    // Another client of this process, which has to close the former log, too.
    let other = beside.lock("other").unwrap().ttl(TTL).acquire().await.unwrap();
    let number = fs::metadata(&file).unwrap().ino();
    fs::write(&file, fs::read(&copy).unwrap()).unwrap();
    assert_eq!(fs::metadata(&file).unwrap().ino(), number);
    for log in ["db-wal", "db-shm"] {
        fs::remove_file(folder.path().join(log)).unwrap();
    }
    let url = format!("sqlite:{}", file.display());
    let mut next = child::start("hold", &url, |_| {});
    next.says();
    for lost in [guard.lost(), other.lost()] {
        let lost = tokio::time::timeout(TTL, lost).await;
        assert_eq!(lost.expect("told within the TTL"), LossReason::EntryGone);
    }
    // Both go on with the new log.
    for client in [&first, &beside] {
        assert!(client.lock("shared").unwrap().try_acquire().await.unwrap().is_none());
    }
    next.go();
    assert_eq!(next.says(), "released");
    first.lock("shared").unwrap().acquire().await.unwrap().release().await.unwrap();
    next.ends();
}
