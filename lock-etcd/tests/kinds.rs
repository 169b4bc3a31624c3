//! Shared locks and permits: their costs, and how foreign clients see them.

use std::time::Duration;

use lock_core::{Attempt, DistributedLock, Error, Kind, LockGuard, Locks, Request, Wait};
use lock_etcd::client::{Client, PutOptions};
use tokio::task::JoinSet;

use crate::support::{self, *};

/// The kinds that leave room for others of their kind.
const BESIDE: [Kind; 2] = [Kind::Shared, Kind::Permit { weight: 1, limit: 12 }];

async fn acquire_kind(locks: &Locks, name: &str, kind: Kind) -> LockGuard {
    soon(acquiring(locks, name, kind)).await.unwrap()
}

fn acquiring(
    locks: &Locks,
    name: &str,
    kind: Kind,
) -> impl Future<Output = lock_core::Result<LockGuard>> + Send + use<> {
    let locks = locks.clone();
    let name = name.to_owned();
    async move {
        match kind {
            Kind::Shared => locks.shared(name)?.acquire().await,
            Kind::Permit { weight, limit } => {
                locks.semaphore(name, limit)?.acquire_many(weight).await
            }
            _ => locks.lock(name)?.acquire().await,
        }
    }
}

#[tokio::test]
async fn every_kind_costs_one_transaction_and_one_delete_alone_or_beside_others() {
    let etcd = etcd().await;
    let (ours, theirs) = (locks(&etcd.url()).await, locks(&etcd.url()).await);
    for kind in BESIDE {
        for alone in [true, false] {
            let other = match alone {
                true => None,
                false => Some(acquire_kind(&theirs, "job", kind).await),
            };
            acquire_kind(&ours, "job", kind).await.release().await.unwrap();
            println!("{kind:?} alone: {alone}");
            costs(&etcd, 40, async || {
                for _ in 0..20 {
                    acquire_kind(&ours, "job", kind).await.release().await.unwrap();
                }
            })
            .await;
            if let Some(other) = other {
                other.release().await.unwrap();
            }
        }
    }
}

#[tokio::test]
async fn keys_say_of_what_kind_they_are() {
    let etcd = etcd().await;
    let locks = locks(&etcd.url()).await;
    for (kind, expected) in [
        (Kind::Exclusive, "0"),
        (Kind::Shared, "0.r"),
        (Kind::Permit { weight: 2, limit: 30 }, "0.p2.30"),
    ] {
        let guard = acquire_kind(&locks, "job", kind).await;
        let key = keys(&etcd).await.remove(0);
        assert_eq!(key.split_once('.').unwrap().1, expected);
        let shown = locks.inspect("job").await.unwrap().remove(0);
        assert_eq!((shown.kind, shown.holds), (kind, true));
        assert_eq!(shown.holder.token, Some(guard.token()));
        guard.release().await.unwrap();
    }
}

#[tokio::test]
async fn one_release_admits_all_waiters_that_fit_and_causes_no_request() {
    for kind in BESIDE {
        let etcd = etcd().await;
        let (holder, ours) = (locks(&etcd.url()).await, locks(&etcd.url()).await);
        let guard = acquire_kind(&holder, "job", Kind::Exclusive).await;
        let mut waiting = JoinSet::new();
        for _ in 0..10 {
            waiting.spawn(acquiring(&ours, "job", kind));
        }
        until_queued(&ours, "job", 11).await;
        let last = tokio::spawn(acquiring(&holder, "job", Kind::Exclusive));
        until_queued(&ours, "job", 12).await;
        until_quiet(&etcd).await;
        let before = etcd.counters().await.unwrap();
        guard.release().await.unwrap();
        let mut guards = Vec::new();
        while let Some(granted) = soon(waiting.join_next()).await {
            guards.push(granted.unwrap().unwrap());
        }
        until_quiet(&etcd).await;
        let spent = etcd.counters().await.unwrap();
        assert_eq!(requests(&spent, &before), [("Txn".to_owned(), 1)]);
        // One event for each client.
        assert!(events(&spent, &before) <= 2, "{}", spent.since(&before));
        assert!(!last.is_finished());
        for guard in guards {
            guard.release().await.unwrap();
        }
        soon(last).await.unwrap().unwrap().release().await.unwrap();
        until_clean(&etcd).await;
    }
}

#[tokio::test]
async fn a_refused_try_writes_nothing_and_one_that_fits_asks_twice() {
    let etcd = etcd().await;
    let (ours, theirs) = (driver(&etcd.url()).await, locks(&etcd.url()).await);
    let trying = |kind| {
        let mut request = Request::new(name("job"), Duration::from_secs(600));
        (request.kind, request.wait) = (kind, Wait::Try);
        ours.acquire(request, Attempt::new())
    };
    trying(Kind::Shared).await.unwrap().release().await.unwrap();
    for kind in BESIDE {
        let other = acquire_kind(&theirs, "job", kind).await;
        let before = etcd.counters().await.unwrap();
        let beside = trying(kind).await.unwrap();
        let spent = etcd.counters().await.unwrap();
        assert_eq!(requests(&spent, &before), [("Txn".to_owned(), 2)]);
        beside.release().await.unwrap();
        let revision = etcd.revision().await.unwrap();
        let refused = [Kind::Exclusive, Kind::Permit { weight: 12, limit: 12 }];
        for kind in refused {
            let refused = trying(kind).await.unwrap_err();
            assert!(matches!(refused, Error::Contended { .. }), "{refused}");
        }
        if matches!(kind, Kind::Permit { .. }) {
            let refused = trying(Kind::Permit { weight: 1, limit: 7 }).await.unwrap_err();
            assert!(matches!(refused, Error::InvalidOption { .. }), "{refused}");
        }
        assert_eq!(etcd.revision().await.unwrap(), revision);
        other.release().await.unwrap();
    }
}

#[tokio::test]
async fn a_lost_reply_to_a_try_beside_others_is_asked_for_again() {
    let etcd = etcd().await;
    let (locks, proxy) = behind_proxy(&etcd, "").await;
    let theirs = support::locks(&etcd.url()).await;
    locks.lock("warm-up").unwrap().acquire().await.unwrap().release().await.unwrap();
    let other = acquire_kind(&theirs, "job", Kind::Shared).await;
    proxy.half_open();
    let trying = tokio::spawn(locks.shared("job").unwrap().try_acquire());
    proxy.reset();
    proxy.heal();
    let guard = soon(trying).await.unwrap().unwrap().expect("there is room");
    until_queued(&theirs, "job", 2).await;
    guard.release().await.unwrap();
    until_queued(&theirs, "job", 1).await;
    other.release().await.unwrap();
}

#[tokio::test]
async fn a_waiter_with_another_limit_waits_outside_of_the_queue() {
    let etcd = etcd().await;
    let locks = locks(&etcd.url()).await;
    let first = acquire_kind(&locks, "job", Kind::Permit { weight: 2, limit: 2 }).await;
    let other = Kind::Permit { weight: 1, limit: 3 };
    let begun = etcd.revision().await.unwrap();
    let waiter = tokio::spawn(acquiring(&locks, "job", other));
    // It enters, and leaves again.
    until("it has come and gone", || async { etcd.revision().await.unwrap() >= begun + 2 }).await;
    until_queued(&locks, "job", 1).await;
    first.release().await.unwrap();
    soon(waiter).await.unwrap().unwrap().release().await.unwrap();
    until_clean(&etcd).await;
}

/// Go's client waits for every key before its own, and its key is an exclusive entry for our
/// clients.
#[tokio::test]
async fn a_key_like_gos_excludes_readers_and_permits() {
    let etcd = etcd().await;
    let locks = locks(&etcd.url()).await;
    let mut go = Client::connect([etcd.addr().to_string()], None).await.unwrap();
    let lease = go.lease_grant(60, None).await.unwrap().id();
    let key = format!("job/{lease:x}");
    for kind in BESIDE {
        let first = acquire_kind(&locks, "job", kind).await;
        go.put(&*key, "", Some(PutOptions::new().with_lease(lease))).await.unwrap();
        let behind = tokio::spawn(acquiring(&locks, "job", kind));
        until_queued(&locks, "job", 3).await;
        first.release().await.unwrap();
        until_queued(&locks, "job", 2).await;
        assert!(!behind.is_finished(), "it is Go's turn");
        go.delete(&*key, None).await.unwrap();
        soon(behind).await.unwrap().unwrap().release().await.unwrap();
    }
}
