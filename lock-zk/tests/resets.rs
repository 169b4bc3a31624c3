//! Connections that break all the time, in sessions that live.

mod support;

use std::{
    sync::{
        Arc,
        atomic::{AtomicBool, AtomicU64, Ordering},
    },
    time::Duration,
};

use lock_core::Clock;
use support::*;

/// Replies get lost at every stage of acquiring, waiting and releasing; nobody must notice more
/// than the time it takes.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn nothing_is_lost_granted_twice_or_left_behind() {
    let server = server().await;
    let proxies = [proxy(&server).await, proxy(&server).await];
    let held = Arc::new(AtomicBool::new(false));
    let newest = Arc::new(AtomicU64::new(0));
    let end = Clock::Boot.now() + Duration::from_secs(4);
    let mut clients = Vec::new();
    let mut workers = tokio::task::JoinSet::new();
    for proxy in &proxies {
        let locks = open(&server.url_via(proxy)).await;
        for worker in 0..4_u64 {
            let (lock, held, newest) =
                (locks.lock("resets").unwrap(), held.clone(), newest.clone());
            workers.spawn(async move {
                let mut grants = 0_u64;
                while Clock::Boot.now() < end {
                    let guard = lock.acquire().await.unwrap();
                    assert!(!held.swap(true, Ordering::SeqCst), "held twice");
                    let before = newest.swap(guard.token().value(), Ordering::SeqCst);
                    assert!(before < guard.token().value(), "tokens rise");
                    if grants % 5 == worker {
                        tokio::time::sleep(Duration::from_millis(1)).await;
                    }
                    assert!(guard.is_valid());
                    held.store(false, Ordering::SeqCst);
                    guard.release().await.unwrap();
                    grants += 1;
                }
                grants
            });
        }
        clients.push(locks);
    }
    break_until(end, &proxies, workers).await;
    eventually("nothing remains on the server", || async {
        let counters = server.counters().await.unwrap();
        counters.get("ephemerals") == 0 && counters.get("watches") == 0
    })
    .await;
    assert_eq!(server.counters().await.unwrap().get("sessions_expired"), 0);
}
