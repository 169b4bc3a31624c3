//! A burst of acquires beside a lock that is held.

mod support;

use std::time::Duration;

use futures_util::{FutureExt, future::join_all};
use lock_core::{Clock, Locks, Result};
use lock_lab::Etcd;
use support::*;
use tokio::sync::Mutex;

/// Far more than etcd serves within the TTL.
const TASKS: usize = 4000;

/// More than the TTL; what is under way then is done after it.
const LONG: Duration = Duration::from_secs(3);

async fn work(locks: Locks, name: String) -> Result<usize> {
    let end = Clock::Boot.now() + LONG;
    let mut done = 0;
    while Clock::Boot.now() < end {
        let guard = locks.lock(&name).unwrap().acquire().await?;
        guard.release().await?;
        done += 1;
    }
    Ok(done)
}

/// One burst at a time: each takes all that the machine has.
static ONE: Mutex<()> = Mutex::const_new(());

async fn burst() {
    let _one = ONE.lock().await;
    let etcd = Etcd::start().await.unwrap();
    let locks = locks(&format!("{}?ttl=2s", etcd.url())).await;
    let held = locks.lock("held").unwrap().acquire().await.unwrap();
    let started = Clock::Boot.now();
    let working = (0..TASKS).map(|n| tokio::spawn(work(locks.clone(), format!("job{n}"))));
    let lost = held.lost();
    let told = tokio::spawn(async move { (lost.await, Clock::Boot.now().since(started)) });
    let done: Result<Vec<_>> =
        join_all(working).await.into_iter().map(|done| done.unwrap()).collect();
    let lost = told.now_or_never().map(|told| told.unwrap());
    let cycles = done.as_ref().map(|done| done.iter().sum::<usize>());
    println!("{cycles:?} cycles in {:?}, lost: {lost:?}", Clock::Boot.now().since(started));
    assert!(lost.is_none() && cycles.is_ok());
}

#[tokio::test]
async fn a_held_lock_outlives_a_burst_of_acquires_on_one_thread() {
    burst().await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_held_lock_outlives_a_burst_of_acquires() {
    burst().await;
}
