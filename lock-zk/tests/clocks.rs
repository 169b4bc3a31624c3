//! A runtime whose clock is not the boot clock, as when the machine was suspended: tokio's timers
//! stand still then, and here they jump.

use std::time::Duration;

use lock_core::{Attempt, Clock, LockName, Request};
use lock_lab::{Counters, ZooKeeper};

use crate::support::*;

/// Every limit and every pause of the driver counts by the boot clock, so none is over at once.
#[tokio::test]
async fn nothing_follows_a_clock_of_tokio_that_jumps() {
    const TTL: Duration = Duration::from_secs(5);
    let server = server().await;
    let url = format!("{}?ttl={}s", server.url(), TTL.as_secs());
    tokio::time::pause();
    let here = as_dyn(driver(&url).await.unwrap());
    let there = as_dyn(driver(&url).await.unwrap());
    let request = || Request::new(LockName::new("paused").unwrap(), TTL);
    let lease = here.acquire(request(), Attempt::new()).await.unwrap();
    let waiter = (there.clone(), request());
    let next = tokio::spawn(async move { waiter.0.acquire(waiter.1, Attempt::new()).await });
    eventually("the other one waits", async || {
        here.inspect(&request().name).await.unwrap().len() == 2
    })
    .await;
    let before = counters(&server).await;
    Clock::Boot.sleep(TTL + TTL / 5).await;
    let used = counters(&server).await.since(&before);
    assert!(lease.validity().loss().is_none() && lease.validity().until() > Clock::Boot.now());
    assert!(!next.is_finished());
    // Both clients renew eight times per TTL, and the waiter looks once.
    assert!(used.get("packets_received") < 60, "{used}");
    lease.release().await.unwrap();
    let next = Clock::Boot.timeout(PATIENCE, next).await.expect("its turn");
    next.unwrap().unwrap().release().await.unwrap();
    here.close().await.unwrap();
    there.close().await.unwrap();
    tokio::time::resume();
}

/// The lab has limits on tokio's clock.
async fn counters(server: &ZooKeeper) -> Counters {
    tokio::time::resume();
    let counters = server.counters().await.unwrap();
    tokio::time::pause();
    counters
}
