//! Networks and servers that break.

use std::time::Duration;

use lock_core::{Clock, LossReason};

use crate::support::*;

#[tokio::test]
async fn a_holder_that_is_cut_off_is_told_before_the_next_one_holds() {
    let server = server().await;
    let proxy = proxy(&server).await;
    let (cut_off, other) = (open(&server.url_via(&proxy)).await, open(&server.url()).await);
    let guard = cut_off.lock("cut").unwrap().ttl(SHORT).acquire().await.unwrap();
    let next = queue_up(&other, other.lock("cut").unwrap().ttl(SHORT), "cut", 1).await;
    let start = Clock::Boot.now();
    proxy.cut();
    let told = tokio::spawn({
        let lost = guard.lost();
        async move { (lost.await, Clock::Boot.now()) }
    });
    let next = soon("the next one holds", next).await.unwrap().unwrap();
    let held_at = Clock::Boot.now();
    let (reason, told_at) = soon("the holder is told", told).await.unwrap();
    assert_eq!(reason, LossReason::Expired);
    assert!(told_at < held_at, "told {:?} after the next grant", told_at.since(held_at));
    let limit = SHORT + other.guarantees().expiry_slack + Duration::from_secs(1);
    assert!(held_at.since(start) < limit, "{:?}", held_at.since(start));
    assert!(next.token() > guard.token());
    assert!(!guard.is_valid());
    proxy.heal();
    // The old session is over; the same client works again.
    next.release().await.unwrap();
    let again = soon("a new session", cut_off.lock("cut").unwrap().ttl(SHORT).acquire()).await;
    assert!(again.unwrap().token() > guard.token());
}

#[tokio::test]
async fn a_waiter_learns_that_its_session_died() {
    let server = server().await;
    let proxy = proxy(&server).await;
    let (cut_off, other) = (open(&server.url_via(&proxy)).await, open(&server.url()).await);
    let guard = other.lock("dead").unwrap().acquire().await.unwrap();
    let waiter = queue_up(&other, cut_off.lock("dead").unwrap().ttl(SHORT), "dead", 1).await;
    let start = Clock::Boot.now();
    proxy.cut();
    let error = soon("the waiter is told", waiter).await.unwrap().unwrap_err();
    assert!(is_unavailable(&error), "{error}");
    assert!(Clock::Boot.now().since(start) < SHORT * 2);
    eventually("its entry is gone", || async { other.inspect("dead").await.unwrap().len() == 1 })
        .await;
    guard.release().await.unwrap();
}

#[tokio::test]
async fn an_outage_is_an_error_and_never_a_busy_lock() {
    let server = server().await;
    let proxy = proxy(&server).await;
    let locks = open(&server.url_via(&proxy)).await;
    let lock = locks.lock("out").unwrap().ttl(SHORT);
    lock.acquire().await.unwrap().release().await.unwrap();
    proxy.cut();
    let start = Clock::Boot.now();
    let error = lock.acquire().await.unwrap_err();
    assert!(is_unavailable(&error), "{error}");
    assert!(Clock::Boot.now().since(start) < SHORT * 2);
    let error = lock.try_acquire().await.unwrap_err();
    assert!(is_unavailable(&error), "{error}");
    proxy.heal();
    soon("it works again", lock.acquire()).await.unwrap().release().await.unwrap();
    eventually("nothing remains", || async {
        server.counters().await.unwrap().get("ephemerals") == 0
    })
    .await;
}

#[tokio::test]
async fn holding_and_waiting_survive_a_restart_of_the_server() {
    let server = calm_server().await;
    let (here, there) = (open_calm(&server).await, open_calm(&server).await);
    let guard = here.lock("restart").unwrap().acquire().await.unwrap();
    let next = queue_up(&here, there.lock("restart").unwrap(), "restart", 1).await;
    let last = queue_up(&here, here.lock("restart").unwrap(), "restart", 2).await;
    server.spoil();
    server.restart().await.unwrap();
    assert!(guard.is_valid() && !next.is_finished() && !last.is_finished());
    let token = guard.token();
    soon("the release", guard.release()).await.unwrap();
    let next = soon("the next one holds", next).await.unwrap().unwrap();
    assert!(next.token() > token);
    next.release().await.unwrap();
    drop(soon("the last one holds", last).await.unwrap().unwrap());
}

/// The client crate alone would have paused for 3.2 s in between.
#[tokio::test]
async fn an_outage_of_most_of_the_ttl_is_survived() {
    let server = server().await;
    let proxy = proxy(&server).await;
    let (here, there) = (open(&server.url_via(&proxy)).await, open(&server.url()).await);
    let ttl = Duration::from_secs(5);
    let guard = here.lock("away").unwrap().ttl(ttl).acquire().await.unwrap();
    let waiter = queue_up(&there, here.lock("away").unwrap().ttl(ttl), "away", 1).await;
    proxy.refuse();
    tokio::time::sleep(ttl * 7 / 10).await;
    proxy.heal();
    eventually("the lock is renewed", || async { guard.remaining() > ttl / 2 }).await;
    guard.release().await.unwrap();
    drop(soon("the waiter holds", waiter).await.unwrap().unwrap());
    assert_eq!(server.counters().await.unwrap().get("sessions_expired"), 0);
}

#[tokio::test]
async fn an_unanswered_creation_is_found_again() {
    let server = server().await;
    let proxy = proxy(&server).await;
    let (locks, raw) = (open(&server.url_via(&proxy)).await, raw(&server).await);
    let lock = locks.lock("lost").unwrap();
    let first = lock.acquire().await.unwrap();
    proxy.half_open();
    let waiter = tokio::spawn(lock.acquire());
    eventually("the server has created the node", || async {
        children(&raw, "/locks/lost").await.len() == 2
    })
    .await;
    proxy.reset();
    proxy.heal();
    eventually("the connection is there again", || async { first.renew().await.is_ok() }).await;
    assert_eq!(children(&raw, "/locks/lost").await.len(), 2, "one node per attempt");
    first.release().await.unwrap();
    let guard = soon("the adopted entry holds", waiter).await.unwrap().unwrap();
    assert_eq!(children(&raw, "/locks/lost").await.len(), 1);
    guard.release().await.unwrap();
    assert!(children(&raw, "/locks/lost").await.is_empty());
}

#[tokio::test]
async fn an_unanswered_creation_of_a_caller_that_left_is_swept() {
    let server = server().await;
    let proxy = proxy(&server).await;
    let (locks, raw) = (open(&server.url_via(&proxy)).await, raw(&server).await);
    let lock = locks.lock("left").unwrap();
    lock.acquire().await.unwrap().release().await.unwrap();
    proxy.half_open();
    let attempt = tokio::spawn(lock.acquire());
    eventually("the server has created the node", || async {
        children(&raw, "/locks/left").await.len() == 1
    })
    .await;
    attempt.abort();
    proxy.reset();
    proxy.heal();
    eventually("nothing remains", || async { children(&raw, "/locks/left").await.is_empty() })
        .await;
    // In the same session: it was swept, not expired.
    assert_eq!(server.counters().await.unwrap().get("sessions_expired"), 0);
}

#[tokio::test]
async fn an_unanswered_release_is_repeated() {
    let server = server().await;
    let proxy = proxy(&server).await;
    let (locks, raw) = (open(&server.url_via(&proxy)).await, raw(&server).await);
    let guard = locks.lock("repeat").unwrap().acquire().await.unwrap();
    proxy.cut();
    let release = tokio::spawn(guard.release());
    tokio::task::yield_now().await;
    proxy.reset();
    proxy.heal();
    soon("the release", release).await.unwrap().unwrap();
    assert!(children(&raw, "/locks/repeat").await.is_empty());
    assert_eq!(server.counters().await.unwrap().get("sessions_expired"), 0);
}

/// The hand-over within a process does not wait for the server.
#[tokio::test]
async fn the_next_waiter_of_the_same_client_holds_at_once() {
    let server = server().await;
    let proxy = proxy(&server).await;
    let (locks, other) = (open(&server.url_via(&proxy)).await, open(&server.url()).await);
    let guard = locks.lock("baton").unwrap().acquire().await.unwrap();
    let next = queue_up(&other, locks.lock("baton").unwrap(), "baton", 1).await;
    let last = queue_up(&other, other.lock("baton").unwrap(), "baton", 2).await;
    proxy.cut();
    let release = tokio::spawn(guard.release());
    let next = soon("the next one holds", next).await.unwrap().unwrap();
    assert!(next.is_valid() && !release.is_finished() && !last.is_finished());
    proxy.heal();
    soon("the release", release).await.unwrap().unwrap();
    assert!(!last.is_finished());
    next.release().await.unwrap();
    drop(soon("the other client holds", last).await.unwrap().unwrap());
}

#[tokio::test]
async fn a_cut_off_client_never_passes_the_lock_on_after_its_deadline() {
    let server = server().await;
    let proxy = proxy(&server).await;
    let (locks, other) = (open(&server.url_via(&proxy)).await, open(&server.url()).await);
    let lock = locks.lock("late").unwrap().ttl(SHORT);
    let guard = lock.acquire().await.unwrap();
    let next = queue_up(&other, lock.clone(), "late", 1).await;
    proxy.cut();
    soon("the holder is told", guard.lost()).await;
    drop(guard);
    let error = soon("the waiter is told", next).await.unwrap().unwrap_err();
    assert!(is_unavailable(&error), "{error}");
}

#[tokio::test]
async fn a_server_that_stops_for_a_while_is_waited_for() {
    let server = server().await;
    let locks = open(&server.url()).await;
    let lock = locks.lock("stopped").unwrap();
    let guard = lock.acquire().await.unwrap();
    server.stop();
    let release = tokio::spawn(guard.release());
    let next = tokio::spawn(lock.acquire());
    let next = soon("the next one holds", next);
    server.resume();
    soon("the release", release).await.unwrap().unwrap();
    next.await.unwrap().unwrap().release().await.unwrap();
}
