//! Thousands of acquires of one client at once.

use std::time::Duration;

use lock_core::{Clock, LockGuard, Locks, Result};
use tokio::task::JoinHandle;

const TTL: Duration = Duration::from_secs(2);
const TASKS: usize = 4000;

/// Holds a lock with a short TTL while as many tasks take other locks, and while they give them
/// back. All of them must succeed, and the lock must stay valid.
pub async fn a_held_lock_outlives_a_burst(locks: Locks) {
    let held = locks.lock("held").unwrap().ttl(TTL).acquire().await.unwrap();
    let start = Clock::Boot.now();
    let lock = |n| locks.lock(format!("other-{n}")).unwrap();
    let asked: Vec<_> = (0..TASKS).map(|n| tokio::spawn(lock(n).acquire())).collect();
    let mut guards: Vec<LockGuard> = Vec::with_capacity(TASKS);
    for asked in asked {
        let guard = asked.await.unwrap();
        let now = Clock::Boot.now().since(start);
        assert!(held.is_valid(), "lost after {now:?}, with {} others granted", guards.len());
        guards.push(guard.unwrap_or_else(|error| panic!("after {now:?}: {error}")));
    }
    println!("{TASKS} granted after {:?}", Clock::Boot.now().since(start));
    let released: Vec<JoinHandle<Result<()>>> =
        guards.into_iter().map(|guard| tokio::spawn(guard.release())).collect();
    for released in released {
        released.await.unwrap().unwrap();
        assert!(held.is_valid(), "lost after {:?}", Clock::Boot.now().since(start));
    }
    println!("{TASKS} released after {:?}", Clock::Boot.now().since(start));
    held.release().await.unwrap();
}
