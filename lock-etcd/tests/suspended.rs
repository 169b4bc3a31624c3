//! A machine that sleeps: tokio's clock stands still meanwhile, and that of the TTLs goes on. And a
//! process that stands still.

use std::time::Duration;

use lock_core::{Clock, Error, LossReason};

use crate::support::*;

const TTL: Duration = Duration::from_secs(3);

#[tokio::test]
async fn a_lock_is_renewed_by_the_clock_that_goes_on() {
    let etcd = etcd().await;
    let locks = locks(&format!("{}?ttl=3s", etcd.url())).await;
    for _ in 0..5 {
        let guard = locks.lock("job").unwrap().acquire().await.unwrap();
        guard.renew().await.unwrap();
        let longest = asleep_for(TTL * 2).await;
        if guard.is_valid() {
            return guard.release().await.unwrap();
        }
        // A lock ends if the process itself stands still.
        assert!(longest >= TTL / 3, "it is lost, and no step took longer than {longest:?}");
    }
    panic!("the process stood still each time");
}

/// Stops tokio's clock for this long. Returns how long the process stood still at the most.
async fn asleep_for(time: Duration) -> Duration {
    tokio::time::pause();
    let mut now = Clock::Boot.now();
    let (until, mut longest) = (now + time, Duration::ZERO);
    while now < until {
        // A runtime that is never idle does not advance its paused clock.
        std::thread::sleep(Duration::from_millis(1));
        tokio::task::yield_now().await;
        let last = std::mem::replace(&mut now, Clock::Boot.now());
        longest = longest.max(now.since(last));
    }
    tokio::time::resume();
    longest
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
    let expired = matches!(told, Err(Error::PlaceLost { reason: LossReason::Expired, .. }));
    assert!(expired, "{told:?}");
}
