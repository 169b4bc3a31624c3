//! Many locks of one client at the same moment.

use std::{
    sync::{
        Arc,
        atomic::{AtomicUsize, Ordering},
    },
    time::Duration,
};

use crate::support::{undisturbed::undisturbed, *};

const BURST: usize = 4000;

/// A burst waits in this process. Holders renew and release before it.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_release_does_not_wait_for_a_burst_of_acquires() {
    // A machine that stands still between two renewals ends the held lock.
    undisturbed(Duration::from_millis(500), beside_a_burst_of_acquires).await;
}

async fn beside_a_burst_of_acquires() -> Result<(), String> {
    let server = server().await;
    let locks = open(&format!("{}?ttl=2s", server.url())).await;
    let held = locks.lock("held").unwrap().acquire().await.unwrap();
    let released = locks.lock("released").unwrap().acquire().await.unwrap();
    let (began, granted) = (Arc::new(AtomicUsize::new(0)), Arc::new(AtomicUsize::new(0)));
    let mut burst = tokio::task::JoinSet::new();
    for number in 0..BURST {
        let lock = locks.lock(format!("burst{number}")).unwrap();
        let (began, granted) = (began.clone(), granted.clone());
        burst.spawn(async move {
            let acquire = lock.acquire();
            began.fetch_add(1, Ordering::Relaxed);
            let guard = acquire.await.unwrap();
            granted.fetch_add(1, Ordering::Relaxed);
            guard.release().await.unwrap();
        });
    }
    eventually("all have begun", || async { began.load(Ordering::Relaxed) == BURST }).await;
    let before = granted.load(Ordering::Relaxed);
    soon("the release", released.release()).await.unwrap();
    let meanwhile = granted.load(Ordering::Relaxed) - before;
    assert!(
        before + meanwhile < BURST && meanwhile < 1000,
        "{before} before, {meanwhile} meanwhile"
    );
    while let Some(done) = soon("each of the burst", burst.join_next()).await {
        done.unwrap();
        if !held.is_valid() {
            return Err("the held lock is lost".to_owned());
        }
    }
    held.release().await.map_err(|lost| lost.to_string())
}

/// A burst of looks waits in this process, too.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_release_does_not_wait_for_a_burst_of_looks() {
    let server = server().await;
    let locks = open(&format!("{}?ttl=2s", server.url())).await;
    let held = locks.lock("held").unwrap().acquire().await.unwrap();
    let released = locks.lock("released").unwrap().acquire().await.unwrap();
    let (began, answered) = (Arc::new(AtomicUsize::new(0)), Arc::new(AtomicUsize::new(0)));
    let mut burst = tokio::task::JoinSet::new();
    for _ in 0..BURST {
        let (locks, name) = (locks.clone(), held.name().clone());
        let (began, answered) = (began.clone(), answered.clone());
        burst.spawn(async move {
            began.fetch_add(1, Ordering::Relaxed);
            assert_eq!(locks.inspect(&name).await.unwrap().len(), 1);
            answered.fetch_add(1, Ordering::Relaxed);
        });
    }
    eventually("all have begun", || async { began.load(Ordering::Relaxed) == BURST }).await;
    let before = answered.load(Ordering::Relaxed);
    soon("the release", released.release()).await.unwrap();
    let meanwhile = answered.load(Ordering::Relaxed) - before;
    assert!(
        before + meanwhile < BURST && meanwhile < 1000,
        "{before} before, {meanwhile} meanwhile"
    );
    while let Some(done) = soon("each of the burst", burst.join_next()).await {
        done.unwrap();
        assert!(held.is_valid());
    }
    held.release().await.unwrap();
}

/// Callers that leave the burst leave nothing, and let the others pass.
#[tokio::test]
async fn a_caller_that_leaves_a_burst_sends_nothing() {
    let server = server().await;
    let locks = open(&server.url()).await;
    server.stop();
    let mut burst = Vec::new();
    for number in 0..BURST {
        burst.push(tokio::spawn(locks.lock(format!("burst{number}")).unwrap().acquire()));
    }
    let last = tokio::spawn(locks.lock("last").unwrap().acquire());
    for _ in 0..10 {
        tokio::task::yield_now().await;
    }
    burst.iter().for_each(|acquire| acquire.abort());
    server.resume();
    let (used, guard) =
        cost(&server, async { soon("the last", last).await.unwrap().unwrap() }).await;
    // Nodes whose creation was sent are removed again.
    assert!(used.get("packets_received") < BURST as u64, "{used}");
    guard.release().await.unwrap();
    eventually("nothing remains", || async {
        server.counters().await.unwrap().get("ephemerals") == 0
    })
    .await;
}

/// A session that is gone needs no deletions.
#[tokio::test]
async fn losing_700_locks_at_once_sends_nothing_after_the_heal() {
    let server = server().await;
    let proxy = proxy(&server).await;
    let locks = open(&format!("{}?ttl=2s", server.url_via(&proxy))).await;
    let mut held = Vec::new();
    for first in (0..700).step_by(50) {
        let names = (first..first + 50).map(|number| format!("lost{number}"));
        held.push(locks.all(names).unwrap().acquire().await.unwrap());
    }
    // Requests that were sent before the cut arrive after the heal.
    eventually("all own nodes are watched", || async {
        // And the token floor.
        server.counters().await.unwrap().get("watches") == 701
    })
    .await;
    proxy.cut();
    for guard in &held {
        soon("each is told", guard.lost()).await;
    }
    drop(held);
    eventually("they end with their session", || async {
        server.counters().await.unwrap().get("ephemerals") == 0
    })
    .await;
    let (used, ()) = cost(&server, async {
        proxy.heal();
        tokio::time::sleep(Duration::from_secs(1)).await;
    })
    .await;
    assert!(used.get("packets_received") < 20, "{used}");
}

/// Its own nodes do not take all the room for watches: a waiter without one asks once a second.
#[tokio::test]
async fn a_waiter_of_a_client_with_many_locks_has_a_watch() {
    let server = calm_server().await;
    let (locks, raw) = (open_calm(&server).await, raw(&server).await);
    let long = |number: usize| format!("{number:0>130}");
    let mut held = Vec::new();
    for first in (0..700).step_by(50) {
        let names = (first..first + 50).map(long);
        held.push(locks.all(names).unwrap().acquire().await.unwrap());
    }
    // A node is watched when it is 100 ms old.
    let mut watched = 0;
    while watched < 100 || watched != watches(&server).await {
        watched = watches(&server).await;
        tokio::time::sleep(Duration::from_millis(600)).await;
    }
    let busy = long(1000);
    let theirs = foreign(&raw, &format!("/locks/{busy}"), "_c_theirs-lock-").await;
    let waiter = queue_up(&locks, locks.lock(&busy).unwrap(), &busy, 1).await;
    eventually("the waiter watches the holder", async || watches(&server).await > watched).await;
    raw.delete(&theirs, None).await.unwrap();
    soon("its turn", waiter).await.unwrap().unwrap().release().await.unwrap();
}

/// Nor do its observers.
#[tokio::test]
async fn a_waiter_of_a_client_with_many_observers_has_a_watch() {
    let server = calm_server().await;
    let (locks, raw) = (open_calm(&server).await, raw(&server).await);
    let long = |number: usize| format!("{number:0>130}");
    let mut observers = Vec::new();
    for number in 0..450 {
        observers.push(locks.election(long(number)).unwrap().observe().await.unwrap());
    }
    let watched = watches(&server).await;
    assert!((100..450).contains(&watched), "{watched} watches");
    let busy = long(1000);
    let theirs = foreign(&raw, &format!("/locks/{busy}"), "_c_theirs-lock-").await;
    let waiter = queue_up(&locks, locks.lock(&busy).unwrap(), &busy, 1).await;
    eventually("the waiter watches the holder", async || watches(&server).await > watched).await;
    raw.delete(&theirs, None).await.unwrap();
    soon("its turn", waiter).await.unwrap().unwrap().release().await.unwrap();
}

async fn watches(server: &lock_lab::ZooKeeper) -> u64 {
    server.counters().await.unwrap().get("watches")
}
