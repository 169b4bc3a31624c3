//! Failures, and their effects on holders and waiters.

use std::time::Duration;

use lock_core::{Error, LossReason};
use lock_lab::Proxy;

use crate::support::{undisturbed::undisturbed, *};

/// The stream of keep-alives is open, so the next ones are sent without waiting for an answer.
#[tokio::test]
async fn a_holder_whose_keep_alives_are_not_answered_is_told_before_another_is_granted() {
    for cut in [Proxy::cut, Proxy::half_open] {
        let etcd = etcd().await;
        let (cut_off, proxy) = behind_proxy(&etcd, "?ttl=6s").await;
        let others = locks(&etcd.url()).await;
        let guard = cut_off.lock("job").unwrap().acquire().await.unwrap();
        guard.renew().await.unwrap();
        let waiting = tokio::spawn(others.lock("job").unwrap().acquire());
        until_queued(&others, "job", 2).await;
        cut(&proxy);
        let next = soon(waiting).await.unwrap().unwrap();
        assert!(!guard.is_valid(), "two holders");
        assert_eq!(soon(guard.lost()).await, LossReason::Expired);
        assert!(next.token() > guard.token());
    }
}

#[tokio::test]
async fn changes_during_a_broken_watch_are_found() {
    let etcd = etcd().await;
    let (ours, proxy) = behind_proxy(&etcd, "?ttl=600s").await;
    let theirs = locks(&etcd.url()).await;
    let guard = theirs.lock("job").unwrap().acquire().await.unwrap();
    let holding = ours.lock("held").unwrap().acquire().await.unwrap();
    let waiting = tokio::spawn(ours.lock("job").unwrap().acquire());
    until_queued(&theirs, "job", 2).await;
    // Their client watches the lock that it holds, too.
    until("all are watched", || async { etcd.counters().await.unwrap().get("watchers") == 3 })
        .await;
    proxy.refuse();
    guard.release().await.unwrap();
    etcd.delete_prefix(b"held/").await.unwrap();
    // No event of it can be replayed.
    etcd.compact().await.unwrap();
    proxy.heal();
    let _granted = soon(waiting).await.unwrap().unwrap();
    assert_eq!(soon(holding.lost()).await, LossReason::EntryGone);
}

#[tokio::test]
async fn a_waiter_and_its_predecessor_are_lost_with_their_session() {
    let etcd = etcd().await;
    let locks = locks(&etcd.url()).await;
    let guard = locks.lock("job").unwrap().acquire().await.unwrap();
    let waiting = tokio::spawn(locks.lock("job").unwrap().acquire());
    until_queued(&locks, "job", 2).await;
    let lease = etcd.leases().await.unwrap()[0];
    etcd.revoke(lease).await.unwrap();
    let told = soon(waiting).await.unwrap();
    assert!(matches!(told, Err(Error::PlaceLost { .. } | Error::Rejected { .. })), "{told:?}");
    let reason = soon(guard.lost()).await;
    assert!(matches!(reason, LossReason::EntryGone | LossReason::SessionEnded), "{reason:?}");
    // A new session is made at the latest when the keep-alive fails.
    soon(locks.lock("job").unwrap().acquire()).await.unwrap().release().await.unwrap();
}

#[tokio::test]
async fn a_session_that_died_unnoticed_is_replaced_by_the_next_acquire() {
    let etcd = etcd().await;
    let locks = locks(&etcd.url()).await;
    locks.lock("job").unwrap().acquire().await.unwrap().release().await.unwrap();
    etcd.revoke(etcd.leases().await.unwrap()[0]).await.unwrap();
    locks.lock("job").unwrap().acquire().await.unwrap().release().await.unwrap();
    assert_eq!(etcd.leases().await.unwrap().len(), 1);
}

#[tokio::test]
async fn the_next_member_is_asked_when_one_is_gone() {
    let etcd = etcd().await;
    let first = Proxy::start(etcd.addr()).await.unwrap();
    let second = Proxy::start(etcd.addr()).await.unwrap();
    let locks = locks(&format!("etcd://{},{}?ttl=6s", first.addr(), second.addr())).await;
    let guard = locks.lock("job").unwrap().acquire().await.unwrap();
    let waiting = tokio::spawn(locks.lock("job").unwrap().acquire());
    until_queued(&locks, "job", 2).await;
    first.cut();
    let guard = {
        guard.release().await.unwrap();
        soon(waiting).await.unwrap().unwrap()
    };
    // From the second member, which is gone now, back to the first.
    first.heal();
    second.refuse();
    tokio::time::sleep(Duration::from_secs(7)).await;
    assert!(guard.is_valid());
    guard.release().await.unwrap();
    until_clean(&etcd).await;
}

/// The next keep-alive is minutes away, and nothing else is asked.
#[tokio::test]
async fn a_watch_on_a_silent_connection_is_missed_whatever_the_ttl() {
    let etcd = etcd().await;
    let ways = [Proxy::start(etcd.addr()).await.unwrap(), Proxy::start(etcd.addr()).await.unwrap()];
    let hosts = ways.each_ref().map(|way| way.addr().to_string()).join(",");
    let (ours, theirs) =
        (locks(&format!("etcd://{hosts}?ttl=600s")).await, locks(&etcd.url()).await);
    let held = ours.lock("held").unwrap().acquire().await.unwrap();
    let guard = theirs.lock("job").unwrap().acquire().await.unwrap();
    let waiting = tokio::spawn(ours.lock("job").unwrap().acquire());
    until_queued(&theirs, "job", 2).await;
    until("all are watched", || async { etcd.counters().await.unwrap().get("watchers") == 3 })
        .await;
    until_quiet(&etcd).await;
    ways.iter().filter(|way| way.stats().connections_open > 0).for_each(Proxy::cut);
    guard.release().await.unwrap();
    etcd.delete_prefix(b"held/").await.unwrap();
    let _granted = soon(waiting).await.unwrap().unwrap();
    assert_eq!(soon(held.lost()).await, LossReason::EntryGone);
}

/// A stream that is being opened gets no answer, while other requests are answered on a new
/// connection.
#[tokio::test]
async fn a_silent_stream_of_one_session_does_not_use_up_the_ttl_of_another() {
    // A machine that stands still for the time between two renewals ends the short one.
    undisturbed(Duration::from_secs(1), beside_a_silent_stream).await;
}

async fn beside_a_silent_stream() -> Result<(), String> {
    let etcd = etcd().await;
    let (locks, proxy) = behind_proxy(&etcd, "?ttl=6s").await;
    let long = locks.lock("long").unwrap().ttl(Duration::from_secs(60)).acquire().await.unwrap();
    let short = locks.lock("short").unwrap().acquire().await.unwrap();
    // From here on the connection is dead. Its requests fail 2 s later.
    proxy.catch(b"bait");
    let busy = tokio::spawn({
        let locks = locks.clone();
        async move {
            loop {
                let bait = locks.lock("bait").unwrap().acquire().await.unwrap();
                bait.release().await.unwrap();
                tokio::time::sleep(Duration::from_millis(20)).await;
            }
        }
    });
    until("it is dead", || async { proxy.caught() == 1 }).await;
    // Some time after that, so that it would wait longer.
    tokio::time::sleep(Duration::from_millis(500)).await;
    // Opens the stream. The read beside it gets no answer.
    let renewed = tokio::spawn(async move { (long.renew().await, long) });
    let lost = tokio::time::timeout(Duration::from_secs(9), short.lost()).await;
    let is_over = busy.is_finished();
    busy.abort();
    let is_valid = soon(renewed).await.unwrap().1.is_valid();
    match (&lost, is_over, is_valid) {
        (Err(_), false, true) => Ok(()),
        _ => Err(format!("lost: {lost:?}, over: {is_over}, the other is valid: {is_valid}")),
    }
}
