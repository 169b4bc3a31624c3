//! Thousands of acquires of one client at once.

use std::{
    sync::{
        Arc,
        atomic::{AtomicBool, AtomicUsize, Ordering::SeqCst},
    },
    time::Duration,
};

use lock_core::{LockGuard, Locks, Result};
use tokio::task::{JoinHandle, yield_now};

/// Of the held lock: it is renewed by itself, early enough for a busy machine.
const TTL: Duration = Duration::from_secs(9);

/// How many requests of the burst have been answered.
#[derive(Clone, Default)]
struct Answers(Arc<AtomicUsize>);

impl Answers {
    fn count(&self) -> usize {
        self.0.load(SeqCst)
    }

    fn add(&self) {
        self.0.fetch_add(1, SeqCst);
    }

    /// Waits for the first one.
    async fn begin(&self) {
        while self.count() == 0 {
            yield_now().await;
        }
    }
}

/// Holds a lock while many tasks take other locks, and while they give them back. All of them must
/// succeed, and renewals of the lock do not wait for grants, neither its own nor those by hand.
pub async fn a_held_lock_outlives_a_burst(locks: Locks) {
    let tasks = lock_lab::size(1000, 4000);
    let passes = |what: &str, answers: usize| {
        println!("{what} after {answers} answers to {tasks} others");
        assert!(answers < tasks / 2, "{what} after {answers} answers to {tasks} others");
    };
    let held = locks.lock("held").unwrap().ttl(TTL).acquire().await.unwrap();
    // When a renewal is due, as nothing delays this one.
    let (due, _) = own_renewal(&held, Duration::ZERO, &Answers::default()).await;

    let (grants, is_over) = (Answers::default(), Arc::new(AtomicBool::new(false)));
    let ask = |n| {
        let lock = locks.lock(format!("other-{n}")).unwrap();
        let (grants, is_over) = (grants.clone(), is_over.clone());
        tokio::spawn(async move {
            loop {
                let guard = lock.acquire().await?;
                grants.add();
                if is_over.load(SeqCst) {
                    return Ok(guard);
                }
                guard.release().await?;
            }
        })
    };
    let asked: Vec<JoinHandle<Result<LockGuard>>> = (0..tasks).map(ask).collect();
    let (_, answers) = own_renewal(&held, due, &grants).await;
    passes("renewed by itself", answers);
    assert!(grants.count() > 0, "the burst begins late");
    let before = grants.count();
    held.renew().await.unwrap();
    passes("renewed by hand", grants.count() - before);
    is_over.store(true, SeqCst);
    let mut guards = Vec::with_capacity(tasks);
    for asked in asked {
        guards.push(asked.await.unwrap().unwrap());
    }

    let releases = Answers::default();
    let release = |guard: LockGuard| {
        let releases = releases.clone();
        tokio::spawn(async move { guard.release().await.inspect(|()| releases.add()) })
    };
    let released: Vec<JoinHandle<Result<()>>> = guards.into_iter().map(release).collect();
    releases.begin().await;
    // A hundred leave by one request, so a busy machine has few of them left when this is answered.
    held.renew().await.unwrap();
    println!("renewed by hand after {} of {tasks} releases", releases.count());
    for released in released {
        released.await.unwrap().unwrap();
    }
    assert!(held.is_valid());
    held.release().await.unwrap();
}

/// Waits until the lock has renewed itself. Returns how short it was held before, and how many
/// answers have come since it was held no longer than `due`.
async fn own_renewal(held: &LockGuard, due: Duration, answers: &Answers) -> (Duration, usize) {
    let (mut left, mut before) = (held.remaining(), answers.count());
    loop {
        tokio::time::sleep(Duration::from_millis(1)).await;
        let now = held.remaining();
        assert!(!now.is_zero(), "it is lost");
        if now > left {
            return (left, answers.count() - before);
        }
        left = now;
        if left > due {
            before = answers.count();
        }
    }
}
