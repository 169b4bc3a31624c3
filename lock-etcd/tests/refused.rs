//! Watches that etcd refuses: the login has expired, or its rights are gone.

use lock_core::{Error, Locks, LossReason};
use lock_etcd::client::{Client, DeleteOptions};
use lock_lab::{Etcd, Proxy};

use crate::support::{self, *};

/// An etcd with logins, a client of the user `me`, and the administrator.
async fn with_login(options: &str) -> (Etcd, Locks, Client) {
    let etcd = etcd().await;
    with_users(&etcd).await.unwrap();
    let url = format!("etcd://me:s3cret@{}?prefix=locks/{options}", etcd.addr());
    let (locks, admin) = (locks(&url).await, admin(&etcd).await);
    (etcd, locks, admin)
}

/// Contends for a name, so that the stream of watches is open.
async fn contend(locks: &Locks, name: &str) {
    let guard = locks.lock(name).unwrap().acquire().await.unwrap();
    let waiting = tokio::spawn(locks.lock(name).unwrap().acquire());
    until_queued(locks, name, 2).await;
    guard.release().await.unwrap();
    soon(waiting).await.unwrap().unwrap().release().await.unwrap();
}

async fn delete_prefix(admin: &mut Client, prefix: &str) {
    let deleted = admin.delete(prefix, Some(DeleteOptions::new().with_prefix())).await.unwrap();
    assert_eq!(deleted.deleted(), 1, "{prefix}");
}

/// Makes all tokens invalid that etcd has issued.
async fn expire_tokens(admin: &mut Client) {
    admin.user_change_password("me", "s3cret").await.unwrap();
}

#[tokio::test]
async fn a_holder_whose_watch_was_refused_is_told_of_a_deletion() {
    let (_etcd, locks, mut admin) = with_login("&ttl=600s").await;
    contend(&locks, "a").await;
    expire_tokens(&mut admin).await;
    let guard = locks.lock("b").unwrap().acquire().await.unwrap();
    delete_prefix(&mut admin, "locks/b/").await;
    assert_eq!(soon(guard.lost()).await, LossReason::EntryGone);
}

#[tokio::test]
async fn a_holder_is_told_after_a_restart_that_forgot_all_logins() {
    let (etcd, locks, _) = with_login("&ttl=600s").await;
    let guard = locks.lock("b").unwrap().acquire().await.unwrap();
    until("it is watched", || async { etcd.counters().await.unwrap().get("watchers") == 1 }).await;
    etcd.restart().await.unwrap();
    let mut admin = admin(&etcd).await;
    delete_prefix(&mut admin, "locks/b/").await;
    assert_eq!(soon(guard.lost()).await, LossReason::EntryGone);
}

#[tokio::test]
async fn a_waiter_whose_watch_was_refused_is_served_at_once() {
    let (etcd, ours, mut admin) = with_login("&ttl=600s").await;
    let theirs = locks(&format!("etcd://me:s3cret@{}?prefix=locks/", etcd.addr())).await;
    contend(&ours, "a").await;
    let guard = theirs.lock("b").unwrap().acquire().await.unwrap();
    expire_tokens(&mut admin).await;
    let waiting = tokio::spawn(ours.lock("b").unwrap().acquire());
    until_queued(&theirs, "b", 2).await;
    // No list can find it any more.
    until_quiet(&etcd).await;
    guard.release().await.unwrap();
    soon(waiting).await.unwrap().unwrap().release().await.unwrap();
}

/// The token has expired, and the login for the next one is not answered. The request must not go
/// out once more with the token that etcd has refused.
#[tokio::test]
async fn a_login_without_an_answer_is_the_reason_that_is_told() {
    let (etcd, _locks, mut admin) = with_login("").await;
    let proxy = Proxy::start(etcd.addr()).await.unwrap();
    let url = format!("etcd://me:s3cret@{}?prefix=locks/&connect_timeout=1500ms", proxy.addr());
    let ours = locks(&url).await;
    expire_tokens(&mut admin).await;
    proxy.catch(b"s3cret");
    let error = ours.inspect("job").await.unwrap_err();
    let is_unavailable = matches!(error, Error::Unavailable { .. });
    assert!(is_unavailable && error.to_string().contains("no answer within 1.5s"), "{error}");
    until("it has logged in", || async { ours.inspect("job").await.is_ok() }).await;
}

#[tokio::test]
async fn waiters_are_denied_and_holders_keep_their_lock_when_the_rights_are_gone() {
    let (etcd, ours, mut admin) = with_login("").await;
    let root = locks(&format!("etcd://root:p%C3%A4ssword@{}?prefix=locks/", etcd.addr())).await;
    let held = ours.lock("held").unwrap().acquire().await.unwrap();
    let first = root.lock("job").unwrap().acquire().await.unwrap();
    let waiting = tokio::spawn(ours.lock("job").unwrap().acquire());
    until_queued(&root, "job", 2).await;
    admin.user_revoke_role("me", "locker").await.unwrap();
    // Every watch begins anew, on a stream of its own.
    etcd.restart().await.unwrap();
    admin = support::admin(&etcd).await;
    let told = soon(waiting).await.unwrap();
    assert!(matches!(told, Err(Error::Denied { .. })), "{told:?}");
    assert!(held.is_valid() && first.is_valid());
    // The rights are back, and so is the watch.
    admin.user_grant_role("me", "locker").await.unwrap();
    delete_prefix(&mut admin, "locks/held/").await;
    assert_eq!(soon(held.lost()).await, LossReason::EntryGone);
}

#[tokio::test]
async fn an_observer_whose_watch_was_refused_hears_of_the_next_leader() {
    let (etcd, ours, mut admin) = with_login("").await;
    let root = locks(&format!("etcd://root:p%C3%A4ssword@{}?prefix=locks/", etcd.addr())).await;
    contend(&ours, "a").await;
    expire_tokens(&mut admin).await;
    let mut observer = ours.election("job").unwrap().observe().await.unwrap();
    assert!(soon(observer.next()).await.unwrap().unwrap().is_none());
    // The earlier read renewed the login, but the stream has the old one.
    expire_tokens(&mut admin).await;
    let mut other = ours.election("other").unwrap().observe().await.unwrap();
    assert!(soon(other.next()).await.unwrap().unwrap().is_none());
    let _leading = root.election("other").unwrap().campaign("x").await.unwrap();
    assert_eq!(soon(other.next()).await.unwrap().unwrap().unwrap().value, b"x");
    let _leading = root.election("job").unwrap().campaign("y").await.unwrap();
    assert_eq!(soon(observer.next()).await.unwrap().unwrap().unwrap().value, b"y");
}

/// Many names are refused at once: the cost does not grow with their number.
#[tokio::test]
async fn a_hundred_refused_watches_cost_no_login_each_and_no_stream() {
    let etcd = etcd().await;
    with_users(&etcd).await.unwrap();
    let proxy = Proxy::start(etcd.addr()).await.unwrap();
    let ours = locks(&format!("etcd://me:s3cret@{}?prefix=locks/&ttl=600s", proxy.addr())).await;
    let root = locks(&format!("etcd://root:p%C3%A4ssword@{}?prefix=locks/", etcd.addr())).await;
    let mut admin = admin(&etcd).await;
    let (mut held, mut waiting) = (Vec::new(), Vec::new());
    for n in 0..100 {
        held.push(root.lock(format!("job{n}")).unwrap().acquire().await.unwrap());
        waiting.push(tokio::spawn(ours.lock(format!("job{n}")).unwrap().acquire()));
    }
    until("all are watched", || async { etcd.counters().await.unwrap().get("watchers") >= 200 })
        .await;
    admin.user_revoke_role("me", "locker").await.unwrap();
    let before = etcd.counters().await.unwrap();
    proxy.reset();
    for waiting in waiting {
        let told = soon(waiting).await.unwrap();
        assert!(matches!(told, Err(Error::Denied { .. })), "{told:?}");
    }
    let spent = etcd.counters().await.unwrap().since(&before);
    let (logins, streams) = (spent.get("rpc.Authenticate"), spent.get("rpc.Watch"));
    assert!(logins <= 2 && streams <= 3, "{logins} logins and {streams} streams: {spent}");
    assert!(held.iter().all(|guard| guard.is_valid()));
}
