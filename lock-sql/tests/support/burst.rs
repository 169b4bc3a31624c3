//! Thousands of acquires of one client at once.

use std::{
    env,
    sync::{
        Arc,
        atomic::{AtomicUsize, Ordering::SeqCst},
    },
    time::Duration,
};

use lock_core::{LockGuard, Locks, Result};
use tokio::task::JoinHandle;

use super::eventually;

const TTL: Duration = Duration::from_secs(30);

/// Holds a lock while many tasks take other locks, and while they give them back. All of them must
/// succeed, and renewals of the lock do not wait for them.
pub async fn a_held_lock_outlives_a_burst(locks: Locks) {
    let tasks = if env::var_os("DISTLOCK_LONG").is_some() { 4000 } else { 1000 };
    let held = locks.lock("held").unwrap().ttl(TTL).acquire().await.unwrap();
    let granted = Arc::new(AtomicUsize::new(0));
    let ask = |n| {
        let (ask, granted) = (locks.lock(format!("other-{n}")).unwrap().acquire(), granted.clone());
        let count = move || granted.fetch_add(1, SeqCst);
        tokio::spawn(async move { ask.await.inspect(|_| _ = count()) })
    };
    let asked: Vec<JoinHandle<Result<LockGuard>>> = (0..tasks).map(ask).collect();
    eventually("the burst", async || granted.load(SeqCst) > 0).await;
    held.renew().await.unwrap();
    let before = granted.load(SeqCst);
    println!("renewed after {before} of {tasks} grants");
    assert!(before < tasks / 2, "renewed after {before} of {tasks} grants");
    let mut guards = Vec::with_capacity(tasks);
    for asked in asked {
        guards.push(asked.await.unwrap().unwrap());
    }
    let released: Vec<JoinHandle<Result<()>>> =
        guards.into_iter().map(|guard| tokio::spawn(guard.release())).collect();
    held.renew().await.unwrap();
    for released in released {
        released.await.unwrap().unwrap();
    }
    assert!(held.is_valid());
    held.release().await.unwrap();
}
