//! A burst of acquires beside a lock that is held.

use std::time::Duration;

use futures_util::{FutureExt, future::join_all};
use lock_core::{Clock, Locks, Result};
use lock_lab::Etcd;
use tokio::sync::Mutex;

use crate::support::*;

/// Each task takes and gives back a lock of its own.
const TASKS: usize = 4000;

/// The shortest TTL that etcd grants by default.
const SHORTEST: Duration = Duration::from_secs(2);

async fn all_at_once(locks: &Locks, tasks: usize) -> Result<()> {
    let working = (0..tasks).map(|n| {
        let lock = locks.lock(format!("job{n}")).unwrap();
        tokio::spawn(async move { lock.acquire().await?.release().await })
    });
    join_all(working).await.into_iter().try_for_each(|done| done.unwrap())
}

/// Returns a TTL in which this machine, as busy as it is, cannot serve all tasks once: a keep-alive
/// that waits for all of them comes too late. A fixed TTL does not fit: the time for all tasks
/// depends on the machine, and on how often a process gets to run.
async fn ttl_for(etcd: &Etcd) -> Duration {
    const PART: usize = 8;
    let locks = locks(&format!("{}?ttl=300s", etcd.url())).await;
    let started = Clock::Boot.now();
    all_at_once(&locks, TASKS / PART).await.unwrap();
    let once = Clock::Boot.now().since(started) * PART as u32;
    locks.close().await.unwrap();
    Duration::from_secs(once.as_secs() / 2).max(SHORTEST)
}

/// One burst at a time: each one uses the whole machine.
static ONE: Mutex<()> = Mutex::const_new(());

async fn burst() {
    let _one = ONE.lock().await;
    let etcd = etcd().await;
    let ttl = ttl_for(&etcd).await;
    let locks = locks(&format!("{}?ttl={}s", etcd.url(), ttl.as_secs())).await;
    let held = locks.lock("held").unwrap().acquire().await.unwrap();
    let started = Clock::Boot.now();
    let lost = held.lost();
    let told = tokio::spawn(async move { (lost.await, Clock::Boot.now().since(started)) });
    let mut bursts = Vec::new();
    // Longer than the TTL, also if the machine is not as busy any more.
    while Clock::Boot.now() < started + ttl + SHORTEST / 2 {
        bursts.push(all_at_once(&locks, TASKS).await);
    }
    let lost = told.now_or_never().map(|told| told.unwrap());
    let took = Clock::Boot.now().since(started);
    println!("{bursts:?} in {took:?}, TTL {ttl:?}, lost: {lost:?}");
    assert!(lost.is_none() && bursts.iter().all(Result::is_ok));
}

mod alone {
    /// One thread that others push aside renews nothing: the TTL is that of the machine as it was.
    #[tokio::test]
    async fn a_held_lock_outlives_a_burst_of_acquires_on_one_thread() {
        super::burst().await;
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_held_lock_outlives_a_burst_of_acquires() {
    burst().await;
}
