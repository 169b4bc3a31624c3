//! The time of a grant, as other clients see it.

use std::time::{Duration, SystemTime};

use lock_core::{Error, Holder, Locks};

use super::eventually;

/// How long the waiter waits.
const WAIT: Duration = Duration::from_secs(3);

/// Waits until the queue of `a` has this many entries. Returns the first one's holder.
async fn first(locks: &Locks, entries: usize) -> Holder {
    let mut first = None;
    eventually("a queue of this length", async || {
        let queue = locks.inspect("a").await.unwrap();
        first = queue.first().map(|entry| entry.holder.clone());
        queue.len() == entries
    })
    .await;
    first.unwrap()
}

/// Waits until the time of the only entry's grant is known. Returns when it was queued and granted.
async fn granted(locks: &Locks) -> (SystemTime, SystemTime) {
    let mut times = None;
    eventually("a time of the grant", async || {
        let holder = first(locks, 1).await;
        times = holder.queued_at.zip(holder.granted_at);
        times.is_some()
    })
    .await;
    times.unwrap()
}

/// A holder that has waited is shown with how long it holds the lock, not with how long ago it
/// came.
pub async fn a_wait_does_not_count_as_hold(a: Locks, b: Locks) {
    let lock = a.lock("a").unwrap();
    let guard = lock.acquire().await.unwrap();
    let holder = first(&b, 1).await;
    let at_once = holder.granted_at.expect("the time of a grant at once");
    assert!(holder.queued_at.unwrap() + WAIT > at_once, "{holder:?}");
    let waiter = tokio::spawn(b.lock("a").unwrap().acquire());
    assert_eq!(first(&a, 2).await.granted_at, Some(at_once));
    assert_eq!(a.inspect("a").await.unwrap()[1].holder.granted_at, None);
    // The wait tells the two times apart.
    tokio::time::sleep(WAIT).await;
    guard.release().await.unwrap();
    let guard = waiter.await.unwrap().unwrap();
    let (queued_at, granted_at) = granted(&a).await;
    assert!(granted_at >= queued_at + WAIT, "queued {queued_at:?}, granted {granted_at:?}");
    let vain = lock.clone().wait(Duration::from_millis(20)).acquire().await.unwrap_err();
    let Error::WaitTimeout { holder: Some(holder), .. } = vain else { panic!("{vain}") };
    assert_eq!(holder.granted_at, Some(granted_at));
    assert!(!holder.to_string().contains("queued"), "{holder}");
    guard.release().await.unwrap();
}

/// A lock that is left to another process at once is dated as well.
pub async fn a_lock_left_at_once_is_dated(a: Locks, b: Locks) {
    let guard = a.lock("a").unwrap().acquire().await.unwrap();
    let waiter = tokio::spawn(b.lock("a").unwrap().acquire());
    first(&a, 2).await;
    let before = lock_core::wall_clock();
    guard.release().await.unwrap();
    let ticket = waiter.await.unwrap().unwrap().detach().await.unwrap();
    let dated = first(&a, 1).await.granted_at.expect("the time of the grant");
    // In a test, a server's clock is this machine's. The client dates the grant back to when it
    // learned of it.
    assert!(dated + Duration::from_secs(1) > before, "{dated:?} is before {before:?}");
    let guard = a.adopt(&ticket).await.unwrap();
    assert_eq!(first(&b, 1).await.granted_at, Some(dated));
    guard.release().await.unwrap();
}

/// A fixed term is not renewed: its time is written before the lock is given out.
pub async fn a_fixed_term_that_was_waited_for_is_dated(a: Locks, b: Locks) {
    let guard = a.lock("a").unwrap().acquire().await.unwrap();
    let waiter = tokio::spawn(b.lock("a").unwrap().fixed_term().acquire());
    first(&a, 2).await;
    guard.release().await.unwrap();
    let guard = waiter.await.unwrap().unwrap();
    assert!(first(&a, 1).await.granted_at.is_some());
    guard.release().await.unwrap();
}

/// A set, a reader, a leader and permits that get their lock at once are dated by that request.
pub async fn every_kind_granted_at_once_is_dated(a: Locks, b: Locks) {
    let dated = async |name: &str| {
        let queue = b.inspect(name).await.unwrap();
        assert!(!queue.is_empty(), "{name}");
        for entry in queue {
            assert!(entry.holds && entry.holder.granted_at.is_some(), "{name}: {entry:?}");
        }
    };
    let set = a.all(["s/1", "s/2"]).unwrap().acquire().await.unwrap();
    let readers = (
        a.shared("r").unwrap().acquire().await.unwrap(),
        b.shared("r").unwrap().acquire().await.unwrap(),
    );
    let semaphore = a.semaphore("p", 3).unwrap();
    let permits = (semaphore.acquire_many(2).await.unwrap(), semaphore.acquire().await.unwrap());
    let leader = a.election("e").unwrap().campaign("me").await.unwrap();
    for name in ["s/1", "s/2", "r", "p", "e"] {
        dated(name).await;
    }
    let seen = b.election("e").unwrap().leader().await.unwrap().expect("a leader");
    assert!(seen.holder.granted_at.is_some(), "{seen:?}");
    drop((set, readers, permits, leader));
}
