//! A store that is restored from an older backup while clients are connected.

use std::time::Duration;

use lock_core::{Error, LockGuard, Locks, LossReason};
use lock_lab::{Backup, Etcd};

use crate::support::*;

/// Its session is in the backup, and so its keep-alives go on.
const OPTIONS: &str = "?ttl=60s";

async fn acquire(locks: &Locks, name: &str) -> LockGuard {
    soon(locks.lock(name).unwrap().acquire()).await.unwrap()
}

/// Makes a backup in which the client holds `first`. After that the store goes on.
async fn backed_up(etcd: &Etcd, locks: &Locks) -> (LockGuard, Backup) {
    let first = acquire(locks, "first").await;
    let backup = etcd.back_up().await.unwrap();
    for _ in 0..200 {
        acquire(locks, "other").await.release().await.unwrap();
    }
    (first, backup)
}

#[tokio::test]
async fn holders_and_waiters_of_a_state_that_is_gone_are_told() {
    let etcd = etcd().await;
    let ours = locks(&format!("{}{OPTIONS}", etcd.url())).await;
    let (first, backup) = backed_up(&etcd, &ours).await;
    let guard = acquire(&ours, "job").await;
    let waiting = tokio::spawn(ours.lock("job").unwrap().acquire());
    until_queued(&ours, "job", 2).await;
    etcd.restore(&backup).await.unwrap();
    assert_eq!(soon(guard.lost()).await, LossReason::Restored);
    assert_eq!(soon(first.lost()).await, LossReason::Restored);
    let told = soon(waiting).await.unwrap();
    let restored = LossReason::Restored;
    assert!(matches!(told, Err(Error::PlaceLost { reason, .. }) if reason == restored), "{told:?}");
    // The entry that the backup brought back goes with its session.
    let theirs = locks(&etcd.url()).await;
    let next = [acquire(&theirs, "job").await, acquire(&theirs, "first").await];
    // The client that was there goes on like any other.
    let waiting = tokio::spawn(ours.lock("job").unwrap().acquire());
    until_queued(&theirs, "job", 2).await;
    until_quiet(&etcd).await;
    let before = etcd.counters().await.unwrap();
    for guard in next {
        assert!(guard.is_valid());
        guard.release().await.unwrap();
    }
    let again = soon(waiting).await.unwrap().unwrap();
    let spent = requests(&etcd.counters().await.unwrap(), &before);
    assert_eq!(spent, [("Txn".to_owned(), 2)]);
    again.release().await.unwrap();
}

/// An acquire finds out by its own answer, and begins again in a new session.
#[tokio::test]
async fn an_acquire_after_the_restore_is_granted() {
    let etcd = etcd().await;
    let ours = locks(&format!("{}{OPTIONS}", etcd.url())).await;
    let (first, backup) = backed_up(&etcd, &ours).await;
    first.release().await.unwrap();
    etcd.restore(&backup).await.unwrap();
    let guard = acquire(&ours, "job").await;
    let leases = etcd.leases().await.unwrap().len();
    guard.renew().await.unwrap();
    assert!(guard.is_valid() && leases <= 2, "{leases} leases");
    // The entry that was released is back, and goes with the session that made it.
    acquire(&ours, "first").await.release().await.unwrap();
    guard.release().await.unwrap();
}

/// Its last request is long ago, and after the restore others write more than it has seen since the
/// backup. So its keep-alives alone tell it how far the store was.
#[tokio::test]
async fn what_an_idle_client_gave_back_after_the_backup_does_not_stay() {
    let etcd = etcd().await;
    let ours = locks(&format!("{}?ttl=6s", etcd.url())).await;
    let guard = acquire(&ours, "job").await;
    let backup = etcd.back_up().await.unwrap();
    guard.release().await.unwrap();
    let theirs = locks(&format!("{}?ttl=300s", etcd.url())).await;
    for _ in 0..200 {
        acquire(&theirs, "other").await.release().await.unwrap();
    }
    let before = etcd.counters().await.unwrap();
    // The first one may open the stream, and the third is sent after the second was read.
    until("a keep-alive has told the revision", || async {
        etcd.counters().await.unwrap().since(&before).get("sent.LeaseKeepAlive") >= 3
    })
    .await;
    etcd.restore(&backup).await.unwrap();
    for _ in 0..20 {
        acquire(&theirs, "other").await.release().await.unwrap();
    }
    // The backup has its entry, and its session lives.
    acquire(&theirs, "job").await.release().await.unwrap();
    acquire(&ours, "job").await.release().await.unwrap();
}

#[tokio::test]
async fn an_observer_reads_anew() {
    let etcd = etcd().await;
    let ours = locks(&format!("{}{OPTIONS}", etcd.url())).await;
    let theirs = locks(&etcd.url()).await;
    let election = theirs.election("job").unwrap();
    let backup = etcd.back_up().await.unwrap();
    let mut observer = ours.election("job").unwrap().observe().await.unwrap();
    assert!(soon(observer.next()).await.unwrap().unwrap().is_none());
    let leading = soon(election.campaign("before")).await.unwrap();
    assert_eq!(soon(observer.next()).await.unwrap().unwrap().unwrap().value, b"before");
    for _ in 0..200 {
        acquire(&ours, "other").await.release().await.unwrap();
    }
    etcd.restore(&backup).await.unwrap();
    assert!(soon(observer.next()).await.unwrap().unwrap().is_none());
    soon(leading.lost()).await;
}

/// A member that lags is asked for the revision of the cluster, and nothing ends.
#[tokio::test]
async fn a_restart_without_a_restore_ends_nothing() {
    let etcd = etcd().await;
    let ours = locks(&format!("{}{OPTIONS}", etcd.url())).await;
    let guard = acquire(&ours, "job").await;
    acquire(&ours, "other").await.release().await.unwrap();
    etcd.restart().await.unwrap();
    acquire(&ours, "other").await.release().await.unwrap();
    until("it is watched again", || async { etcd.counters().await.unwrap().get("watchers") >= 1 })
        .await;
    let lost = tokio::time::timeout(Duration::from_secs(1), guard.lost()).await;
    assert!(lost.is_err(), "{lost:?}");
    guard.release().await.unwrap();
}
