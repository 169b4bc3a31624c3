//! A process that stands still, as one that is stopped, beside a store that is well.
#![cfg(any(feature = "sqlite", feature = "redis", feature = "postgres", feature = "mysql"))]

use std::{sync::mpsc, time::Duration};

use distlock::Error;
use tokio::sync::oneshot;

use crate::support::{Store, connect, eventually};

const TTL: Duration = Duration::from_secs(3);

/// It may have been granted meanwhile, and another client after it. One thread does all of its work.
async fn a_waiter_that_stood_still_has_lost_its_place(store: &str) {
    let server = Store::open(store).await;
    let other = connect(&server.url()).await;
    let held = other.lock("a").unwrap().acquire().await.unwrap();
    let (waits, until_it_waits) = oneshot::channel();
    let (go_on, until_it_goes_on) = mpsc::channel();
    let url = server.url();
    let waiter = tokio::task::spawn_blocking(move || {
        let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap();
        runtime.block_on(async move {
            let locks = connect(&url).await;
            let waiting = tokio::spawn(locks.lock("a").unwrap().ttl(TTL).acquire());
            let is_queued = async || locks.inspect("a").await.unwrap().len() == 2;
            eventually("it is in the queue", is_queued).await;
            waits.send(()).unwrap();
            until_it_goes_on.recv().unwrap();
            waiting.await.unwrap()
        })
    });
    until_it_waits.await.unwrap();
    held.release().await.unwrap();
    let next = other.lock("a").unwrap().acquire().await.unwrap();
    go_on.send(()).unwrap();
    let told = waiter.await.unwrap();
    assert!(matches!(told, Err(Error::PlaceLost { .. })), "{told:?}");
    next.release().await.unwrap();
}

// etcd has a test of its own.
test_on!("sqlite" sqlite a_waiter_that_stood_still_has_lost_its_place);
test_on!("redis" redis a_waiter_that_stood_still_has_lost_its_place);
test_on!("postgres" postgres a_waiter_that_stood_still_has_lost_its_place);
test_on!("mysql" mysql a_waiter_that_stood_still_has_lost_its_place);
