//! Helpers for the tests.

#[path = "../../../tests/shared/beat.rs"]
pub mod beat;
#[path = "../../../tests/shared/bounded.rs"]
pub mod bounded;
mod clients;
#[path = "../../../tests/shared/undisturbed.rs"]
pub mod undisturbed;

use std::{future::Future, time::Duration};

use lock_core::{DistributedLock, Lease, LockName, Locks};
use lock_etcd::{
    EtcdLock,
    client::{Client, ConnectOptions, Permission, PermissionType, RoleRevokePermissionOptions},
};
use lock_lab::{Counters, Etcd, Proxy};

pub use self::clients::*;

/// An etcd that checks passwords in no time.
pub async fn etcd() -> Etcd {
    Etcd::builder().in_memory().arg("--bcrypt-cost=4").start().await.unwrap()
}

/// A client behind a proxy of its own.
pub async fn behind_proxy(etcd: &Etcd, options: &str) -> (Locks, Proxy) {
    let proxy = Proxy::start(etcd.addr()).await.unwrap();
    let locks = locks(&format!("{}{options}", etcd.url_via(&proxy))).await;
    (locks, proxy)
}

/// Waits until a future is ready, but not for ever.
pub async fn soon<T>(future: impl Future<Output = T>) -> T {
    tokio::time::timeout(PATIENCE, future).await.expect("not ready in time")
}

/// Returns all keys but those of sessions, which go with them.
pub async fn keys(etcd: &Etcd) -> Vec<String> {
    let keys = etcd.keys().await.unwrap().into_iter();
    let keys = keys.map(|key| String::from_utf8(key).unwrap());
    keys.filter(|key| !key.starts_with('#') && !key.contains("#session")).collect()
}

/// Waits until only the sessions of clients are left in the store.
pub async fn until_clean(etcd: &Etcd) {
    until("the keys are gone", || async { keys(etcd).await.is_empty() }).await;
}

/// Returns the requests to the server since `before`, without background requests.
pub fn requests(now: &Counters, before: &Counters) -> Vec<(String, u64)> {
    let spent = now.since(before);
    let background = ["rpc.LeaseKeepAlive", "rpc.Watch"];
    let rpc = spent.iter().filter(|(key, _)| key.starts_with("rpc.") && !background.contains(key));
    rpc.map(|(key, count)| (key["rpc.".len()..].to_owned(), count)).collect()
}

/// How long a lock is held until it is watched.
pub const UNWATCHED: Duration = Duration::from_millis(50);

/// Plays a round until it costs these transactions and nothing else. Reads may come on top: on a
/// busy machine a hold lasts so long that it is watched. There is never another number of
/// transactions. Returns the events of the round.
pub async fn costs(etcd: &Etcd, transactions: u64, mut round: impl AsyncFnMut()) -> u64 {
    costs_or_lists(etcd, transactions, async || {
        round().await;
        false
    })
    .await
}

/// Same as [`costs`], for a round that says whether there may be transactions that list names: it
/// has held several of them for [`UNWATCHED`].
pub async fn costs_or_lists(
    etcd: &Etcd,
    transactions: u64,
    mut round: impl AsyncFnMut() -> bool,
) -> u64 {
    const ROUNDS: usize = 5;
    let expected = [("Txn".to_owned(), transactions)];
    let (mut all, mut may_list) = (Vec::new(), false);
    for _ in 0..ROUNDS {
        let before = etcd.counters().await.unwrap();
        // A list may come in the next round only.
        may_list |= round().await;
        let now = etcd.counters().await.unwrap();
        let (spent, sent) = (requests(&now, &before), now.since(&before).get("rpc.Txn"));
        let is_right = sent == transactions || may_list && sent > transactions;
        assert!(is_right, "{spent:?} instead of {expected:?}");
        if spent == expected {
            return events(&now, &before);
        }
        all.push(spent);
    }
    panic!("{all:?}, and never {expected:?}");
}

/// Returns the number of events that the server sent since `before`, or a few less: the server
/// answers each message that begins or ends a watch, and such an answer is no event.
pub fn events(now: &Counters, before: &Counters) -> u64 {
    let spent = now.since(before);
    spent.get("sent.Watch").saturating_sub(spent.get("msg.Watch"))
}

/// Waits until the watches have settled: for 100 ms after they begin. Nothing is sent after that.
pub async fn until_quiet(etcd: &Etcd) {
    let mut last = etcd.counters().await.unwrap();
    loop {
        tokio::time::sleep(Duration::from_millis(300)).await;
        let now = etcd.counters().await.unwrap();
        if requests(&now, &last).is_empty() {
            return;
        }
        last = now;
    }
}

pub fn name(name: &str) -> LockName {
    LockName::new(name).unwrap()
}

/// Acquires directly through the driver.
pub async fn acquire(driver: &EtcdLock, request: lock_core::Request) -> Box<dyn Lease> {
    soon(driver.acquire(request, lock_core::Attempt::new())).await.unwrap()
}

/// Turns authentication on, with a user `me` that may use the keys under `locks/`.
pub async fn with_users(etcd: &Etcd) -> Result<(), Failure> {
    let mut admin = Client::connect([etcd.addr().to_string()], None).await?;
    admin.user_add("root", "pässword", None).await?;
    admin.user_grant_role("root", "root").await?;
    admin.role_add("locker").await?;
    let keys = Permission::new(PermissionType::Readwrite, "locks/").with_prefix();
    admin.role_grant_permission("locker", keys).await?;
    admin.user_add("me", "s3cret", None).await?;
    admin.user_grant_role("me", "locker").await?;
    admin.auth_enable().await?;
    Ok(())
}

/// Returns a client with all rights, after [`with_users`].
pub async fn admin(etcd: &Etcd) -> Client {
    let login = ConnectOptions::new().with_user("root", "pässword");
    Client::connect([etcd.addr().to_string()], Some(login)).await.unwrap()
}

/// The right to read and write all keys with this prefix.
pub fn right(prefix: &str) -> Permission {
    Permission::new(PermissionType::Readwrite, prefix).with_prefix()
}

/// Takes the right to all keys with this prefix away from `me`.
pub async fn take_right(admin: &mut Client, prefix: &str) {
    let all = Some(RoleRevokePermissionOptions::new().with_prefix());
    admin.role_revoke_permission("locker", prefix, all).await.unwrap();
}

/// Same as [`with_users`], but with these rights only.
pub async fn with_rights(etcd: &Etcd, prefixes: &[&str]) -> Client {
    with_users(etcd).await.unwrap();
    let mut admin = admin(etcd).await;
    take_right(&mut admin, "locks/").await;
    for prefix in prefixes {
        admin.role_grant_permission("locker", right(prefix)).await.unwrap();
    }
    admin
}
