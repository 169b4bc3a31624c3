//! Releases that etcd refuses.

use std::time::Duration;

use lock_core::Error;
use lock_etcd::client::{Client, GetOptions};
use lock_lab::Proxy;

use crate::support::*;

fn all() -> Option<GetOptions> {
    Some(GetOptions::new().with_prefix().with_keys_only())
}

async fn keys(admin: &mut Client, prefix: &str) -> usize {
    admin.get(prefix, all()).await.unwrap().kvs().len()
}

async fn leases(admin: &mut Client) -> usize {
    admin.leases().await.unwrap().leases().len()
}

async fn until_gone(admin: &mut Client, prefix: &str) {
    until("it is gone", || {
        let mut admin = admin.clone();
        async move { keys(&mut admin, prefix).await == 0 }
    })
    .await;
}

#[tokio::test]
async fn a_refused_release_is_tried_again_and_ends_no_other_grant() {
    let etcd = etcd().await;
    let mut admin = with_rights(&etcd, &["locks/#", "locks/job/", "locks/other/"]).await;
    let locks = locks(&format!("etcd://me:s3cret@{}?prefix=locks/&ttl=60s", etcd.addr())).await;
    let guard = locks.lock("job").unwrap().acquire().await.unwrap();
    let other = locks.lock("other").unwrap().acquire().await.unwrap();
    let waiting = tokio::spawn(locks.lock("other").unwrap().acquire());
    until_queued(&locks, "other", 2).await;
    take_right(&mut admin, "locks/job/").await;
    let error = soon(guard.release()).await.unwrap_err();
    assert!(matches!(error, Error::Denied { op: "release", .. }), "{error}");
    assert_eq!(keys(&mut admin, "locks/job/").await, 1);
    admin.role_grant_permission("locker", right("locks/job/")).await.unwrap();
    until_gone(&mut admin, "locks/job/").await;
    other.renew().await.unwrap();
    other.release().await.unwrap();
    let next = soon(waiting).await.unwrap().unwrap();
    assert_eq!(leases(&mut admin).await, 1);
    // New attempts live by a new session, and the old one ends with its last grant.
    let new = locks.lock("job").unwrap().acquire().await.unwrap();
    assert_eq!(leases(&mut admin).await, 2);
    next.release().await.unwrap();
    until("the old session ends", || {
        let mut admin = admin.clone();
        async move { leases(&mut admin).await == 1 }
    })
    .await;
    assert!(new.is_valid());
    new.release().await.unwrap();
}

#[tokio::test]
async fn an_entry_that_is_never_removed_goes_with_the_last_grant_of_its_session() {
    let etcd = etcd().await;
    let mut admin = with_rights(&etcd, &["locks/#", "locks/job/", "locks/other/"]).await;
    let locks = locks(&format!("etcd://me:s3cret@{}?prefix=locks/&ttl=2s", etcd.addr())).await;
    let guard = locks.lock("job").unwrap().acquire().await.unwrap();
    let other = locks.lock("other").unwrap().acquire().await.unwrap();
    take_right(&mut admin, "locks/job/").await;
    drop(guard);
    // Longer than a session lives without its keep-alives.
    for _ in 0..20 {
        other.renew().await.unwrap();
        tokio::time::sleep(Duration::from_millis(200)).await;
    }
    assert_eq!(keys(&mut admin, "locks/job/").await, 1);
    other.release().await.unwrap();
    until_gone(&mut admin, "locks/job/").await;
}

/// etcd does not end a lease if the login may not write one of its keys.
#[tokio::test]
async fn closing_frees_all_other_locks_when_the_right_to_one_is_gone() {
    let etcd = etcd().await;
    let mut admin = with_rights(&etcd, &["locks/#", "locks/job/", "locks/other"]).await;
    let locks = locks(&format!("etcd://me:s3cret@{}?prefix=locks/&ttl=60s", etcd.addr())).await;
    let mut held = vec![locks.lock("job").unwrap().acquire().await.unwrap()];
    for n in 0..60 {
        held.push(locks.lock(format!("other{n}")).unwrap().acquire().await.unwrap());
    }
    let waiting = tokio::spawn(locks.lock("other7").unwrap().acquire());
    until_queued(&locks, "other7", 2).await;
    take_right(&mut admin, "locks/job/").await;
    drop(soon(locks.close()).await);
    assert_eq!(keys(&mut admin, "locks/other").await, 0);
    soon(waiting).await.unwrap().unwrap_err();
    assert!(held.iter().all(|guard| !guard.is_valid()));
}

/// etcd carries an adoption out, its answer is lost, the caller leaves, and the right is gone.
#[tokio::test]
async fn an_adoption_that_cannot_be_undone_goes_with_its_session() {
    let etcd = etcd().await;
    let mut admin = with_rights(&etcd, &["locks/#", "locks/job/", "locks/other/"]).await;
    let url = |way: &dyn std::fmt::Display| format!("etcd://me:s3cret@{way}?prefix=locks/&ttl=10s");
    let (theirs, proxy) =
        (locks(&url(&etcd.addr())).await, Proxy::start(etcd.addr()).await.unwrap());
    let ours = locks(&url(&proxy.addr())).await;
    ours.lock("other").unwrap().acquire().await.unwrap().release().await.unwrap();
    let guard = theirs.lock("job").unwrap().acquire().await.unwrap();
    let ticket = guard.detach().await.unwrap();
    let lease = |admin: &Client| {
        let mut admin = admin.clone();
        async move { admin.get("locks/job/", all()).await.unwrap().kvs()[0].lease() }
    };
    let left = lease(&admin).await;
    proxy.half_open();
    let adopting = tokio::spawn({
        let ours = ours.clone();
        async move { ours.adopt(&ticket).await.map(drop) }
    });
    until("etcd has acted", || async { lease(&admin).await != left }).await;
    adopting.abort();
    take_right(&mut admin, "locks/job/").await;
    proxy.reset();
    proxy.heal();
    until_gone(&mut admin, "locks/job/").await;
    drop(ours);
}
