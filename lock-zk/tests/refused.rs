//! Removals that the server refuses.

use lock_core::{Error, Locks};
use lock_zk::client::{Acl, AuthId, Client, Permission};

use crate::support::*;

/// Sets what any login may do in a lock's directory.
async fn permit(raw: &Client, name: &str, permission: Permission) {
    let acl = [Acl::new(permission, AuthId::anyone())];
    raw.set_acl(&format!("/locks/{name}"), &acl, None).await.unwrap();
}

fn all_but_delete() -> Permission {
    Permission::READ | Permission::WRITE | Permission::CREATE | Permission::ADMIN
}

async fn take(locks: &Locks, name: &str) -> lock_core::LockGuard {
    soon("it is granted", locks.lock(name).unwrap().ttl(SHORT).acquire()).await.unwrap()
}

#[tokio::test]
async fn a_refused_release_is_tried_again_and_ends_no_other_lock() {
    let server = server().await;
    let (locks, raw) = (open(&format!("{}?ttl=2s", server.url())).await, raw(&server).await);
    let (guard, other) = (take(&locks, "refused").await, take(&locks, "other").await);
    permit(&raw, "refused", all_but_delete()).await;
    let error = soon("the release", guard.release()).await.unwrap_err();
    assert!(matches!(error, Error::Denied { .. }), "{error}");
    take(&locks, "third").await.release().await.unwrap();
    assert_eq!(children(&raw, "/locks/refused").await.len(), 1);
    permit(&raw, "refused", Permission::ALL).await;
    eventually("it is removed", || async { children(&raw, "/locks/refused").await.is_empty() })
        .await;
    assert!(other.is_valid());
    other.release().await.unwrap();
    assert_eq!(server.counters().await.unwrap().get("sessions_expired"), 0);
}

#[tokio::test]
async fn a_session_with_a_refused_removal_ends_with_its_last_lock() {
    let server = server().await;
    let (locks, raw) = (open(&format!("{}?ttl=2s", server.url())).await, raw(&server).await);
    let (guard, other) = (take(&locks, "refused").await, take(&locks, "other").await);
    // It keeps no session.
    let mut observer = locks.election("led").unwrap().observe().await.unwrap();
    assert!(soon("the vacancy", observer.next()).await.unwrap().unwrap().is_none());
    permit(&raw, "refused", all_but_delete()).await;
    soon("the release", guard.release()).await.unwrap_err();
    eventually("new locks are in another session", || async {
        take(&locks, "third").await.release().await.unwrap();
        server.counters().await.unwrap().get("sessions") == 3
    })
    .await;
    assert!(other.is_valid());
    assert_eq!(children(&raw, "/locks/refused").await.len(), 1);
    other.release().await.unwrap();
    eventually("it is gone with the session", || async {
        children(&raw, "/locks/refused").await.is_empty()
    })
    .await;
    // It was closed, and did not end by itself.
    assert_eq!(server.counters().await.unwrap().get("sessions_expired"), 0);
    let leads = locks.election("led").unwrap().campaign("on").await.unwrap();
    let seen = soon("the observer goes on", observer.next()).await.unwrap().unwrap();
    assert_eq!(seen.map(|leader| leader.token), Some(leads.token()));
}
