//! Callers without a session while etcd is out of reach.

use std::time::Duration;

use futures_util::future::join_all;
use lock_core::{Clock, Error, Locks};
use lock_lab::Proxy;

use crate::support::{self, beat::Beat, *};

const TTL: Duration = Duration::from_secs(3);

/// Waits for a lock in vain. Returns how long that took.
async fn in_vain(locks: Locks, name: String) -> Duration {
    let asked = Clock::Boot.now();
    let error = locks.lock(&name).unwrap().acquire().await.unwrap_err();
    assert!(matches!(error, Error::Unavailable { .. }), "{error}");
    Clock::Boot.now().since(asked)
}

async fn callers_fail_together(locks: &Locks, break_it: impl FnOnce()) {
    break_it();
    let beat = Beat::start();
    let asking = (0..10).map(|n| tokio::spawn(in_vain(locks.clone(), format!("job{n}"))));
    let took: Vec<_> = join_all(asking).await.into_iter().map(Result::unwrap).collect();
    let (slowest, late) = (*took.iter().max().unwrap(), beat.late());
    let limit = TTL + Duration::from_secs(1) + late * 4;
    assert!(slowest < limit, "{took:?}, tasks are late by {late:?}");
}

#[tokio::test]
async fn ten_callers_without_a_session_fail_together_after_one_ttl() {
    let etcd = etcd().await;
    for refuses in [false, true] {
        let (locks, proxy) = behind_proxy(&etcd, "?ttl=3s").await;
        let break_it = || if refuses { proxy.refuse() } else { proxy.cut() };
        callers_fail_together(&locks, break_it).await;
        let before = etcd.counters().await.unwrap();
        proxy.heal();
        locks.lock("job").unwrap().acquire().await.unwrap().release().await.unwrap();
        let now = etcd.counters().await.unwrap();
        // Two requests were under way in the cut and arrive late. No request is sent for the
        // others.
        let grants = now.since(&before).get("rpc.LeaseGrant");
        assert!(grants <= 3, "{grants} grants after the heal");
    }
}

#[tokio::test]
async fn callers_with_logins_and_two_members_fail_together_after_one_ttl() {
    let etcd = etcd().await;
    with_users(&etcd).await.unwrap();
    let proxies =
        [Proxy::start(etcd.addr()).await.unwrap(), Proxy::start(etcd.addr()).await.unwrap()];
    let hosts = proxies.each_ref().map(|proxy| proxy.addr().to_string()).join(",");
    let locks = locks(&format!("etcd://me:s3cret@{hosts}?prefix=locks/&ttl=3s")).await;
    callers_fail_together(&locks, || proxies.iter().for_each(Proxy::cut)).await;
}

/// Tries to take a lock in vain. Returns how long that took.
async fn try_in_vain(locks: Locks, name: String) -> Duration {
    let asked = Clock::Boot.now();
    let error = locks.lock(&name).unwrap().try_acquire().await.unwrap_err();
    assert!(matches!(error, Error::Unavailable { .. }), "{error}");
    Clock::Boot.now().since(asked)
}

/// More callers than may be under way or may try at a time.
#[tokio::test]
async fn a_hundred_callers_fail_after_one_ttl_with_a_session_and_without() {
    let etcd = etcd().await;
    with_users(&etcd).await.unwrap();
    let proxies =
        [Proxy::start(etcd.addr()).await.unwrap(), Proxy::start(etcd.addr()).await.unwrap()];
    let hosts = proxies.each_ref().map(|proxy| proxy.addr().to_string()).join(",");
    let url = format!("etcd://me:s3cret@{hosts}?prefix=locks/&ttl=3s");
    let (with, without) = (locks(&url).await, locks(&url).await);
    let held = with.lock("held").unwrap().acquire().await.unwrap();
    held.renew().await.unwrap();
    proxies.iter().for_each(Proxy::cut);
    let mut asking = Vec::new();
    for n in 0..100 {
        asking.push(tokio::spawn(in_vain(with.clone(), format!("job{n}"))));
    }
    for n in 0..20 {
        asking.push(tokio::spawn(try_in_vain(with.clone(), format!("try{n}"))));
    }
    let alone = in_vain(without, "job".into());
    let (took, alone) = tokio::join!(join_all(asking), alone);
    let took: Vec<_> = took.into_iter().map(Result::unwrap).collect();
    let slowest = *took.iter().max().unwrap();
    assert!(slowest * 2 < alone * 3, "{slowest:?}, and {alone:?} without a session: {took:?}");
    // Each caller has waited a full TTL, too.
    let quickest = *took.iter().min().unwrap();
    assert!(quickest >= TTL, "{quickest:?}: {took:?}");
}

#[tokio::test]
async fn a_caller_that_leaves_does_so_at_once_and_nothing_is_sent_for_it() {
    let etcd = etcd().await;
    let (locks, proxy) = behind_proxy(&etcd, "?ttl=30s").await;
    proxy.refuse();
    let (asked, beat) = (Clock::Boot.now(), Beat::start());
    let asking = (0..10).map(|n| {
        let lock = locks.lock(format!("job{n}")).unwrap().wait(Duration::from_secs(1));
        tokio::spawn(lock.acquire())
    });
    for asked in join_all(asking).await {
        asked.unwrap().unwrap_err();
    }
    let (took, late) = (Clock::Boot.now().since(asked), beat.late());
    let before = etcd.counters().await.unwrap();
    proxy.heal();
    let other = support::locks(&etcd.url()).await;
    other.lock("other").unwrap().acquire().await.unwrap().release().await.unwrap();
    until_quiet(&etcd).await;
    let now = etcd.counters().await.unwrap();
    // Two grants for the other client: one to connect, one for its session.
    assert_eq!(now.since(&before).get("rpc.LeaseGrant"), 2);
    assert!(took < Duration::from_secs(8) + late * 4, "{took:?}, tasks are late by {late:?}");
}

#[tokio::test]
async fn close_ends_everything_within_its_limit_in_an_outage() {
    let etcd = etcd().await;
    let (locks, proxy) = behind_proxy(&etcd, "?ttl=30s").await;
    let held = locks.lock("held").unwrap().acquire().await.unwrap();
    let waiting = tokio::spawn(locks.lock("held").unwrap().acquire());
    until_queued(&locks, "held", 2).await;
    proxy.cut();
    let (asked, beat) = (Clock::Boot.now(), Beat::start());
    locks.close().await.unwrap_err();
    soon(waiting).await.unwrap().unwrap_err();
    drop((held, locks));
    let (took, late) = (Clock::Boot.now().since(asked), beat.late());
    assert!(took < Duration::from_secs(6) + late * 4, "{took:?}, tasks are late by {late:?}");
    drop(proxy);
    // No task of the client is left to try again. The tasks of the lab have ended with the proxy.
    let tasks = tokio::runtime::Handle::current();
    let left = || tasks.metrics().num_alive_tasks() - 1;
    until("all tasks but the beat have ended", || async { left() == 0 }).await;
    let (took, late) = (Clock::Boot.now().since(asked), beat.late());
    assert!(took < Duration::from_secs(10) + late * 4, "{took:?}, tasks are late by {late:?}");
}
