//! Connections that break all the time, in sessions that live on.

use std::{
    sync::{
        Arc,
        atomic::{AtomicBool, AtomicU64, Ordering},
    },
    time::Duration,
};

use lock_core::{Attempt, LockName, LossReason, Request};
use lock_lab::ZooKeeper;

use crate::support::*;

/// The length of the sequence that the server puts behind a name.
const SEQUENCE: usize = 10;

/// Replies get lost at every stage of acquiring, waiting and releasing. Callers must notice nothing
/// but the time that it takes.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn nothing_is_lost_granted_twice_or_left_behind() {
    let server = calm_server().await;
    let proxies = [proxy(&server).await, proxy(&server).await];
    let held = Arc::new(AtomicBool::new(false));
    let newest = Arc::new(AtomicU64::new(0));
    let work = Work::until(lock_lab::size(60, 500), lock_lab::size(40, 400));
    let mut clients = Vec::new();
    let mut workers = tokio::task::JoinSet::new();
    for proxy in &proxies {
        let locks = open_calm_via(&server, proxy).await;
        for worker in 0..4_u64 {
            let (lock, held, newest, work) =
                (locks.lock("resets").unwrap(), held.clone(), newest.clone(), work.clone());
            workers.spawn(async move {
                let mut grants = 0_u64;
                while work.goes_on() {
                    let guard = soon("a grant", lock.acquire()).await.unwrap();
                    assert!(!held.swap(true, Ordering::SeqCst), "held twice");
                    let before = newest.swap(guard.token().value(), Ordering::SeqCst);
                    assert!(before < guard.token().value(), "tokens rise");
                    if grants % 5 == worker {
                        tokio::time::sleep(Duration::from_millis(1)).await;
                    }
                    assert!(guard.is_valid());
                    held.store(false, Ordering::SeqCst);
                    soon("a release", guard.release()).await.unwrap();
                    work.granted();
                    grants += 1;
                }
            });
        }
        clients.push(locks);
    }
    work.with_resets(&proxies, workers).await;
    nothing_remains(&server, clients.len()).await;
}

/// A reply of each kind is lost now and then, also the one to the creation of all nodes of a set.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn sets_are_held_as_a_whole_or_not_at_all() {
    let server = calm_server().await;
    let proxies = [proxy(&server).await, proxy(&server).await];
    let held: Arc<[AtomicBool; 3]> = Arc::default();
    let work = Work::until(lock_lab::size(60, 500), lock_lab::size(40, 400));
    let mut clients = Vec::new();
    let mut workers = tokio::task::JoinSet::new();
    for (client, proxy) in proxies.iter().enumerate() {
        let locks = open_calm_via(&server, proxy).await;
        for worker in 0..3 {
            let numbers = if worker == 0 { vec![client] } else { vec![worker - 1, worker] };
            let (held, set) = (held.clone(), locks.all(numbers.iter().map(|n| format!("set{n}"))));
            let (set, work) = (set.unwrap(), work.clone());
            workers.spawn(async move {
                while work.goes_on() {
                    let guard = soon("a grant", set.acquire()).await.unwrap();
                    let twice = numbers.iter().any(|n| held[*n].swap(true, Ordering::SeqCst));
                    assert!(!twice, "held twice");
                    assert!(guard.is_valid());
                    numbers.iter().for_each(|n| held[*n].store(false, Ordering::SeqCst));
                    soon("a release", guard.release()).await.unwrap();
                    work.granted();
                }
            });
        }
        clients.push(locks);
    }
    work.with_resets(&proxies, workers).await;
    nothing_remains(&server, clients.len()).await;
}

/// Their watched paths are more than a server takes in one frame.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn one_reset_loses_none_of_11_000_locks() {
    let server = server().await;
    let proxy = proxy(&server).await;
    let locks = open(&format!("{}?ttl=8s", server.url_via(&proxy))).await;
    let mut held = Vec::new();
    for first in (0..11_000).step_by(50) {
        let names = (first..first + 50).map(|n| format!("{n:0>130}"));
        held.push(locks.all(names).unwrap().acquire().await.unwrap());
    }
    eventually("many own nodes are watched", || async {
        server.counters().await.unwrap().get("watches") > 200
    })
    .await;
    proxy.reset();
    let lock = locks.lock("after").unwrap();
    soon("it works again", lock.acquire()).await.unwrap().release().await.unwrap();
    assert!(held.iter().all(|guard| guard.is_valid()));
    assert_eq!(server.counters().await.unwrap().get("sessions_expired"), 0);
    // A revoke is noticed, with a watch or without.
    let raw = raw(&server).await;
    for number in [0, 10_999] {
        let directory = format!("/locks/{number:0>130}");
        let node = children(&raw, &directory).await.remove(0);
        raw.delete(&format!("{directory}/{node}"), None).await.unwrap();
        let guard = &held[number / 50];
        assert_eq!(soon("the holder is told", guard.lost()).await.1, LossReason::EntryGone);
    }
}

/// An ensemble may carry out a creation that got no answer after its client has looked for the node
/// over another server, and has made one there. No server does so at a test's wish, so another
/// client makes the late node.
#[tokio::test]
async fn a_node_that_comes_late_does_not_stay_beside_that_of_the_holder() {
    let server = server().await;
    let (proxy, raw) = (proxy(&server).await, raw(&server).await);
    let locks = open(&format!("{}?ttl=8s", server.url_via(&proxy))).await;
    proxy.catch(b"-lock-");
    let acquire = tokio::spawn(locks.lock("late").unwrap().acquire());
    eventually("the creation is on its way", async || proxy.caught() == 1).await;
    proxy.reset();
    let guard = soon("the lock", acquire).await.unwrap().unwrap();
    let held = children(&raw, "/locks/late").await;
    assert_eq!(held.len(), 1, "{held:?}");
    let (stem, _) = held[0].split_at(held[0].len() - SEQUENCE);
    let late = foreign(&raw, "/locks/late", stem).await;
    eventually("the late node is gone", async || raw.check_stat(&late).await.unwrap().is_none())
        .await;
    assert_eq!(children(&raw, "/locks/late").await, held);
    assert!(guard.is_valid());
    guard.release().await.unwrap();
}

/// Same, after a caller that left before there was an answer.
#[tokio::test]
async fn a_node_that_comes_after_its_caller_has_left_does_not_stay() {
    let server = server().await;
    let (proxy, raw) = (proxy(&server).await, raw(&server).await);
    let url = format!("{}?ttl=8s", server.url_via(&proxy));
    let here = as_dyn(in_time(|| driver(&url)).await.unwrap());
    let (name, attempt) = (LockName::new("late").unwrap(), Attempt::new());
    let acquire = here.acquire(Request::new(name, Duration::from_secs(8)), attempt.clone());
    proxy.catch(b"-lock-");
    let leave = async {
        eventually("the creation is on its way", async || proxy.caught() == 1).await;
        attempt.cancel();
        proxy.reset();
    };
    let (left, ()) = tokio::join!(soon("it leaves", acquire), leave);
    assert!(left.is_err(), "{left:?}");
    let stem = format!("_c_{}-lock-", attempt.id());
    let late = foreign(&raw, "/locks/late", &stem).await;
    eventually("the late node is gone", async || raw.check_stat(&late).await.unwrap().is_none())
        .await;
}

async fn nothing_remains(server: &ZooKeeper, clients: usize) {
    eventually("nothing remains on the server", || async {
        let counters = server.counters().await.unwrap();
        // A client watches the token floor.
        counters.get("ephemerals") == 0 && counters.get("watches") == clients as u64
    })
    .await;
    assert_eq!(server.counters().await.unwrap().get("sessions_expired"), 0);
}
