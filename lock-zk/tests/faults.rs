//! Networks and servers that break.

use std::time::Duration;

use crate::support::{undisturbed::undisturbed, *};

/// The client crate alone would have paused for 3.2 s in between.
#[tokio::test]
async fn an_outage_of_most_of_the_ttl_is_survived() {
    let server = server().await;
    let proxy = proxy(&server).await;
    let (here, there) = (open(&server.url_via(&proxy)).await, open(&server.url()).await);
    let ttl = Duration::from_secs(5);
    let expired = async || server.counters().await.unwrap().get("sessions_expired");
    // What is left of the TTL is less than a machine may stand still.
    undisturbed(ttl / 10, async || {
        let before = expired().await;
        let guard = here.lock("away").unwrap().ttl(ttl).acquire().await.unwrap();
        let waiter = queue_up(&there, here.lock("away").unwrap().ttl(ttl), "away", 1).await;
        proxy.refuse();
        tokio::time::sleep(ttl * 7 / 10).await;
        proxy.heal();
        let is_settled = || async { guard.remaining() > ttl / 2 || !guard.is_valid() };
        eventually("the lock is renewed or lost", is_settled).await;
        if !guard.is_valid() {
            return Err(format!("it is lost: {guard:?}"));
        }
        guard.release().await.unwrap();
        let next = soon("the waiter's end", waiter).await.unwrap();
        match (next.map(drop), expired().await - before) {
            (Ok(()), 0) => Ok(()),
            (next, expired) => Err(format!("{next:?}, {expired} sessions have expired")),
        }
    })
    .await;
}

/// The hand-over within a process does not wait for the server.
#[tokio::test]
async fn the_next_waiter_of_the_same_client_holds_at_once() {
    let server = server().await;
    let proxy = proxy(&server).await;
    let (locks, other) = (open(&server.url_via(&proxy)).await, open(&server.url()).await);
    let guard = locks.lock("baton").unwrap().acquire().await.unwrap();
    let next = queue_up(&locks, locks.lock("baton").unwrap(), "baton", 1).await;
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

/// A TTL of one tick, which a single server grants.
#[tokio::test]
async fn a_single_server_is_asked_again_whether_it_stands_alone() {
    let server =
        started(lab().tick(Duration::from_secs(8)).setting("minSessionTimeout", "8000")).await;
    let proxy = proxy(&server).await;
    let locks = open(&format!("{}?ttl=8s", server.url_via(&proxy))).await;
    proxy.catch(b"srvr");
    proxy.reset();
    eventually("the question of the new connection is lost", async || proxy.caught() == 1).await;
    let guard = soon("the lock", locks.lock("alone").unwrap().acquire()).await.unwrap();
    outlives(&guard, Duration::from_secs(12)).await;
    guard.release().await.unwrap();
}
