//! From exclusive to shared and back, and failures meanwhile.

use std::{process::Stdio, time::Duration};

use lock_core::{Error, Kind, LossReason, Request};
use lock_etcd::client::{Client, GetOptions, PutOptions};
use lock_lab::Proxy;
use tokio::task::JoinSet;

use crate::support::{bounded::bounded, *};

#[tokio::test]
async fn a_downgraded_entry_keeps_its_key_and_its_place() {
    let etcd = etcd().await;
    let locks = locks(&etcd.url()).await;
    let mut guard = locks.lock("job").unwrap().acquire().await.unwrap();
    let (before, token) = (keys(&etcd).await, guard.token());
    guard.downgrade().await.unwrap();
    let marked = || async { keys(&etcd).await == [before[0].clone(), format!("{}.s", before[0])] };
    until("the signal is gone", marked).await;
    let shown = locks.inspect("job").await.unwrap();
    assert_eq!((shown.len(), shown[0].kind, shown[0].holds), (1, Kind::Shared, true));
    assert_eq!((guard.token(), shown[0].holder.token), (token, Some(token)));
    guard.renew().await.unwrap();
    guard.release().await.unwrap();
    assert_eq!(keys(&etcd).await, Vec::<String>::new());
}

#[tokio::test]
async fn readers_of_another_client_are_told_of_a_downgrade() {
    let etcd = etcd().await;
    let (ours, theirs) = (locks(&etcd.url()).await, locks(&etcd.url()).await);
    let ttl = Duration::from_secs(60);
    for _ in 0..5 {
        let mut guard = ours.lock("job").unwrap().ttl(ttl).acquire().await.unwrap();
        let mut readers = JoinSet::new();
        for _ in 0..3 {
            readers.spawn(theirs.shared("job").unwrap().ttl(ttl).acquire());
        }
        until_queued(&ours, "job", 4).await;
        until_quiet(&etcd).await;
        let before = etcd.counters().await.unwrap();
        let told = async {
            guard.downgrade().await.unwrap();
            while let Some(reader) = soon(readers.join_next()).await {
                reader.unwrap().unwrap().release().await.unwrap();
            }
        };
        bounded("readers are told, and not by a poll", Duration::from_secs(5), told).await;
        let spent = etcd.counters().await.unwrap().since(&before);
        // The mark, the end of the signal, a list for each client that watches, and three releases.
        assert!(spent.get("rpc.Txn") <= 7, "{spent}");
        guard.release().await.unwrap();
    }
    until_clean(&etcd).await;
}

/// For Go's client and `etcdctl` every entry is exclusive, with or without a mark.
#[tokio::test]
async fn etcdctl_waits_for_a_downgraded_lock_and_for_an_upgraded_one() {
    let etcd = etcd().await;
    let locks = locks(&etcd.url()).await;
    let mut guard = locks.lock("job").unwrap().acquire().await.unwrap();
    guard.downgrade().await.unwrap();
    assert!(guard.try_upgrade().await.unwrap());
    let mut etcdctl = tokio::process::Command::new("etcdctl")
        .env("ETCDCTL_API", "3")
        .args(["--endpoints", &etcd.addr().to_string(), "lock", "job"])
        .stdin(Stdio::null())
        .stdout(Stdio::piped())
        .kill_on_drop(true)
        .spawn()
        .unwrap();
    let mut said = etcdctl.stdout.take().unwrap();
    until_queued(&locks, "job", 2).await;
    assert!(locks.inspect("job").await.unwrap()[0].holds);
    guard.downgrade().await.unwrap();
    assert!(!guard.try_upgrade().await.unwrap(), "etcdctl waits");
    let mut byte = [0];
    let read = tokio::io::AsyncReadExt::read(&mut said, &mut byte);
    tokio::pin!(read);
    let early = tokio::time::timeout(Duration::from_millis(300), &mut read).await;
    assert!(early.is_err(), "etcdctl holds the lock beside a reader");
    guard.release().await.unwrap();
    assert_eq!(soon(read).await.unwrap(), 1);
}

#[tokio::test]
async fn a_mark_without_its_entry_has_no_effect() {
    let etcd = etcd().await;
    let locks = locks(&etcd.url()).await;
    let mut guard = locks.lock("job").unwrap().acquire().await.unwrap();
    guard.downgrade().await.unwrap();
    until("the signal is gone", || async { keys(&etcd).await.len() == 2 }).await;
    let key = keys(&etcd).await.remove(0);
    etcd.delete(key.as_bytes()).await.unwrap();
    assert_eq!(locks.inspect("job").await.unwrap(), []);
    assert_eq!(locks.names("").await.unwrap(), []);
    assert_eq!(soon(guard.lost()).await, LossReason::EntryGone);
    // The entry's successor at the same key is not shared.
    etcd.put(key.as_bytes(), b"").await.unwrap();
    assert_eq!(locks.inspect("job").await.unwrap()[0].kind, Kind::Exclusive);
    assert!(locks.shared("job").unwrap().try_acquire().await.unwrap().is_none());
    // The guard does not remove it, but removes the mark.
    drop(guard);
    until("the mark is gone", || async { keys(&etcd).await == [&*key] }).await;
}

#[tokio::test]
async fn an_upgraded_lock_is_renewed_watched_and_released_like_any_other() {
    let etcd = etcd().await;
    let driver = driver(&etcd.url()).await;
    let mut request = Request::new(name("job"), Duration::from_secs(600));
    request.kind = Kind::Shared;
    let lease = acquire(&driver, request).await;
    for _ in 0..3 {
        let before = lease.token();
        assert!(lease.try_upgrade().await.unwrap());
        assert!(lease.try_upgrade().await.unwrap(), "it is exclusive already");
        assert!(lease.token() > before);
        assert_eq!(i64::try_from(lease.token().value()).unwrap(), etcd.revision().await.unwrap());
        assert_eq!(keys(&etcd).await.len(), 1);
        lease.renew().await.unwrap();
        lease.downgrade().await.unwrap();
        lease.downgrade().await.unwrap();
    }
    // Later than the watch of the entries that the upgrades deleted.
    until("it is watched", || async { etcd.counters().await.unwrap().get("watchers") == 1 }).await;
    assert!(!lease.validity().has_ended());
    etcd.delete_prefix(b"job/").await.unwrap();
    assert_eq!(soon(lease.validity().lost()).await, LossReason::EntryGone);
    assert!(matches!(lease.try_upgrade().await, Err(Error::Lost { .. })));
    assert!(matches!(lease.downgrade().await, Err(Error::Lost { .. })));
    lease.release().await.unwrap();
    until_clean(&etcd).await;
}

/// The network delays the upgrade; it is sent again, and refused.
#[tokio::test]
async fn an_upgrade_that_was_refused_in_doubt_cannot_happen_later() {
    let etcd = etcd().await;
    let (ours, proxy) = behind_proxy(&etcd, "?ttl=30s").await;
    let theirs = locks(&etcd.url()).await;
    let mut guard = ours.shared("job").unwrap().acquire().await.unwrap();
    let (before, token) = (keys(&etcd).await, guard.token());
    proxy.cut();
    let other = theirs.shared("job").unwrap().acquire().await.unwrap();
    let upgrading =
        tokio::spawn(async move { guard.try_upgrade().await.map(|done| (done, guard)) });
    // It is not answered for 2 s, and sent again on a new connection. Then both arrive.
    tokio::time::sleep(Duration::from_millis(2500)).await;
    proxy.heal();
    let (upgraded, mut guard) = soon(upgrading).await.unwrap().unwrap();
    assert!(!upgraded);
    // A sending still under way compares the entry as it was first written.
    let mut raw = Client::connect([etcd.addr().to_string()], None).await.unwrap();
    let entry = raw.get(&*before[0], None).await.unwrap().take_kvs().remove(0);
    assert!(entry.mod_revision() > entry.create_revision());
    other.release().await.unwrap();
    assert_eq!((keys(&etcd).await, guard.token()), (before, token));
    assert!(guard.is_valid());
    // The refusal leaves nothing that stops the next upgrade.
    assert!(guard.try_upgrade().await.unwrap());
    guard.release().await.unwrap();
    until_clean(&etcd).await;
}

/// The upgrade is carried out, its answer is lost, and asking again is refused. Until it is settled,
/// the end of the shared entry is no loss.
#[tokio::test]
async fn an_upgrade_in_doubt_is_no_loss() {
    let etcd = etcd().await;
    let mut admin = with_rights(&etcd, &["locks/#", "locks/job/"]).await;
    let proxy = Proxy::start(etcd.addr()).await.unwrap();
    let url = format!("etcd://me:s3cret@{}?prefix=locks/&ttl=60s", proxy.addr());
    let locks = locks(&url).await;
    let mut guard = locks.shared("job").unwrap().acquire().await.unwrap();
    proxy.half_open();
    let upgrading = tokio::spawn(async move { (guard.try_upgrade().await, guard) });
    until("etcd has acted", || {
        let mut admin = admin.clone();
        async move {
            let all = GetOptions::new().with_prefix().with_keys_only();
            let found = admin.get("locks/job/", Some(all)).await.unwrap();
            found.kvs().iter().all(|kv| !kv.key().ends_with(b".r"))
        }
    })
    .await;
    take_right(&mut admin, "locks/job/").await;
    proxy.reset();
    proxy.heal();
    let (told, mut guard) = soon(upgrading).await.unwrap();
    assert!(matches!(told, Err(Error::Denied { .. })), "{told:?}");
    admin.role_grant_permission("locker", right("locks/job/")).await.unwrap();
    // Longer than a refused watch waits until it begins again.
    let lost = tokio::time::timeout(Duration::from_secs(8), guard.lost()).await;
    assert!(lost.is_err(), "{lost:?}");
    guard.renew().await.unwrap();
    let before = guard.token();
    assert!(guard.try_upgrade().await.unwrap());
    assert!(guard.token() > before);
    guard.release().await.unwrap();
}

/// A watch from the grant on would have etcd read all that happened since, or find it compacted.
#[tokio::test]
async fn after_a_refused_upgrade_the_watch_begins_at_the_refusal() {
    let etcd = etcd().await;
    let url = format!("{}?ttl=600s", etcd.url());
    let (ours, theirs) = (locks(&url).await, locks(&url).await);
    let mut guard = ours.shared("job").unwrap().acquire().await.unwrap();
    let _other = theirs.shared("job").unwrap().acquire().await.unwrap();
    // etcd ends a watch that still reads the history when the history is compacted.
    let watched = || async {
        let counters = etcd.counters().await.unwrap();
        (counters.get("watchers"), counters.get("watchers_behind")) == (2, 0)
    };
    until("both are watched", watched).await;
    etcd.put(b"other", b"").await.unwrap();
    etcd.compact().await.unwrap();
    until_quiet(&etcd).await;
    let before = etcd.counters().await.unwrap();
    assert!(!guard.try_upgrade().await.unwrap());
    until_quiet(&etcd).await;
    until("both are watched", watched).await;
    let spent = requests(&etcd.counters().await.unwrap(), &before);
    assert_eq!(spent, [("Txn".to_owned(), 1)]);
    etcd.delete_prefix(b"job/").await.unwrap();
    assert_eq!(soon(guard.lost()).await, LossReason::EntryGone);
}

#[tokio::test]
async fn an_entry_of_go_prevents_an_upgrade() {
    let etcd = etcd().await;
    let locks = locks(&etcd.url()).await;
    let mut go = Client::connect([etcd.addr().to_string()], None).await.unwrap();
    let mut guard = locks.shared("job").unwrap().acquire().await.unwrap();
    // Its keys may come before or after ours in the alphabet.
    for key in ["job/0", "job/zzz"] {
        go.put(key, "", Some(PutOptions::new())).await.unwrap();
        assert!(!guard.try_upgrade().await.unwrap());
        go.delete(key, None).await.unwrap();
    }
    assert!(guard.try_upgrade().await.unwrap());
    guard.release().await.unwrap();
}
