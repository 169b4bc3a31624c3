//! A machine that sleeps: tokio's clock stands still meanwhile, and that of the TTLs goes on. And a
//! process that stands still.

use std::time::Duration;

use lock_core::{Clock, Error};

use crate::support::*;

const TTL: Duration = Duration::from_secs(3);

#[tokio::test]
async fn a_lock_is_renewed_by_the_clock_that_goes_on() {
    let etcd = etcd().await;
    let locks = locks(&format!("{}?ttl=3s", etcd.url())).await;
    let guard = locks.lock("job").unwrap().acquire().await.unwrap();
    guard.renew().await.unwrap();
    tokio::time::pause();
    let until = Clock::Boot.now() + TTL * 2;
    while Clock::Boot.now() < until {
        // A runtime that is never idle does not advance its paused clock.
        std::thread::sleep(Duration::from_millis(1));
        tokio::task::yield_now().await;
    }
    tokio::time::resume();
    assert!(guard.is_valid());
    guard.release().await.unwrap();
}

/// One thread does all of the client's work, so nothing is renewed while it sleeps.
#[tokio::test]
async fn a_waiter_whose_process_stood_still_has_lost_its_place() {
    let etcd = etcd().await;
    let locks = locks(&format!("{}?ttl=3s", etcd.url())).await;
    etcd.put(b"job/694d8a5c", b"").await.unwrap();
    let waiting = tokio::spawn(locks.lock("job").unwrap().acquire());
    until_queued(&locks, "job", 2).await;
    std::thread::sleep(TTL);
    let told = soon(waiting).await.unwrap();
    assert!(matches!(told, Err(Error::PlaceLost { .. })), "{told:?}");
}
