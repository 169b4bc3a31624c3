//! Names in use, and revoked locks.

use lock_core::{Error, LockName, LossReason};
use lock_etcd::client::{Client, Txn, TxnOp};
use uuid::Uuid;

use crate::support::*;

async fn attempt(locks: &lock_core::Locks, name: &str, at: usize) -> Uuid {
    locks.inspect(name).await.unwrap()[at].attempt.unwrap()
}

#[tokio::test]
async fn more_names_than_one_answer_has_are_listed() {
    let etcd = etcd().await;
    let locks = locks(&format!("{}?prefix=ns/", etcd.url())).await;
    let mut raw = Client::connect([etcd.addr().to_string()], None).await.unwrap();
    for batch in 0..50 {
        // Foreign clients' entries make names, too.
        let put = |n| TxnOp::put(format!("ns/job{:04}/{n:x}", n / 2), "", None);
        let puts: Vec<_> = (batch * 100..(batch + 1) * 100).map(put).collect();
        raw.txn(Txn::new().and_then(puts)).await.unwrap();
    }
    for key in ["other/1", "ns/no name/1", "ns/1", "nsx/1", "ns/mark/1f.0.s"] {
        etcd.put(key.as_bytes(), b"").await.unwrap();
    }
    let names = locks.names("").await.unwrap();
    let expected: Vec<_> = (0..2500).map(|n| name(&format!("job{n:04}"))).collect();
    assert_eq!(names, expected);
    assert_eq!(locks.names("job12").await.unwrap(), expected[1200..1300]);
    assert_eq!(locks.names("no").await.unwrap(), Vec::<LockName>::new());
}

#[tokio::test]
async fn native_names_in_use_are_listed() {
    let etcd = etcd().await;
    let locks = locks(&format!("{}?layout=native", etcd.url())).await;
    let _guards = [
        locks.lock("an odd name%").unwrap().acquire().await.unwrap(),
        locks.lock("..").unwrap().acquire().await.unwrap(),
    ];
    etcd.put(b"a/b/1", b"").await.unwrap();
    assert_eq!(locks.names("").await.unwrap(), [name(".."), name("an odd name%")]);
    assert_eq!(locks.names(".").await.unwrap(), [name("..")]);
}

#[tokio::test]
async fn a_downgraded_holder_that_is_revoked_leaves_no_mark() {
    let etcd = etcd().await;
    let (ours, theirs) = (locks(&etcd.url()).await, locks(&etcd.url()).await);
    let mut guard = ours.lock("job").unwrap().acquire().await.unwrap();
    guard.downgrade().await.unwrap();
    assert!(theirs.revoke("job", attempt(&theirs, "job", 0).await).await.unwrap());
    assert_eq!(keys(&etcd).await, [""; 0]);
    assert_eq!(soon(guard.lost()).await, LossReason::EntryGone);
}

#[tokio::test]
async fn a_reader_that_is_revoked_while_it_waits_loses_its_place() {
    let etcd = etcd().await;
    let (ours, theirs) = (locks(&etcd.url()).await, locks(&etcd.url()).await);
    let guard = theirs.lock("job").unwrap().acquire().await.unwrap();
    let victim = tokio::spawn(ours.shared("job").unwrap().acquire());
    until_queued(&ours, "job", 2).await;
    let behind = tokio::spawn(ours.shared("job").unwrap().acquire());
    until_queued(&ours, "job", 3).await;
    assert!(theirs.revoke("job", attempt(&theirs, "job", 1).await).await.unwrap());
    let told = soon(victim).await.unwrap();
    assert!(matches!(told, Err(Error::PlaceLost { .. })), "{told:?}");
    guard.release().await.unwrap();
    soon(behind).await.unwrap().unwrap().release().await.unwrap();
    until_clean(&etcd).await;
}

#[tokio::test]
async fn a_lost_reply_to_the_revocation_is_asked_for_again() {
    let etcd = etcd().await;
    let (operator, proxy) = behind_proxy(&etcd, "").await;
    let ours = locks(&etcd.url()).await;
    let guard = ours.lock("job").unwrap().acquire().await.unwrap();
    let id = attempt(&operator, "job", 0).await;
    let revoking = tokio::spawn(async move { operator.revoke("job", id).await });
    // It may be any of its replies.
    proxy.drop_next_reply();
    match soon(revoking).await.unwrap() {
        Ok(revoked) => assert!(revoked),
        Err(error) => assert!(matches!(error, Error::Unavailable { .. }), "{error}"),
    }
    drop(guard);
    until_clean(&etcd).await;
}

#[tokio::test]
async fn an_unknown_id_revokes_no_attempt() {
    let etcd = etcd().await;
    let locks = locks(&etcd.url()).await;
    let guard = locks.lock("job").unwrap().acquire().await.unwrap();
    assert!(!locks.revoke("job", Uuid::new_v4()).await.unwrap());
    assert!(!locks.revoke("other", attempt(&locks, "job", 0).await).await.unwrap());
    assert!(guard.is_valid());
}

#[tokio::test]
async fn inspect_shows_how_long_a_holders_lease_lasts() {
    let etcd = etcd().await;
    let locks = locks(&format!("{}?ttl=20s", etcd.url())).await;
    let _guard = locks.lock("job").unwrap().acquire().await.unwrap();
    let waiting = tokio::spawn(locks.lock("job").unwrap().acquire());
    until_queued(&locks, "job", 2).await;
    let queue = locks.inspect("job").await.unwrap();
    let left = queue[0].ttl_left.unwrap();
    assert!((10..=20).contains(&left.as_secs()), "{left:?}");
    assert_eq!(queue[1].ttl_left, None);
    waiting.abort();
}
