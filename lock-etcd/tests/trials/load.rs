//! Holders and waiters of a few names, and what they saw.

use std::{
    sync::{
        Arc, Mutex,
        atomic::{AtomicBool, AtomicUsize, Ordering::Relaxed},
    },
    time::Duration,
};

use lock_core::{Clock, FencingToken, Instant, Locks};
use lock_lab::Side;
use tokio::task::JoinHandle;

use crate::support::PATIENCE;

const NAMES: usize = 3;
/// Workers of each client: more than names, so that each name has waiters.
const WORKERS: usize = 6;

/// Observations of all workers.
#[derive(Default)]
pub struct Load {
    names: [Mutex<Name>; NAMES],
    grants: Mutex<Vec<Instant>>,
    lost: Mutex<Vec<String>>,
    refused: Mutex<Vec<String>>,
    overlaps: AtomicUsize,
    stale: AtomicUsize,
    done: AtomicBool,
    workers: Mutex<Vec<JoinHandle<()>>>,
}

/// What is known of a name, as a resource behind the lock would know it.
#[derive(Default)]
struct Name {
    held: bool,
    greatest: Option<FencingToken>,
    grants: usize,
}

impl Load {
    /// Starts the workers of a client, and one that holds a lock of its own for the whole time.
    pub fn start(self: &Arc<Self>, side: &Side, locks: &Locks) {
        let client = self.workers.lock().unwrap().len();
        let mut workers = vec![side.spawn(keep(self.clone(), locks.clone(), client))];
        workers.extend((0..WORKERS).map(|n| side.spawn(work(self.clone(), locks.clone(), n))));
        self.workers.lock().unwrap().extend(workers);
    }

    fn enter(&self, name: usize, token: FencingToken) {
        self.grants.lock().unwrap().push(Clock::Boot.now());
        let mut name = self.names[name].lock().unwrap();
        name.grants += 1;
        if std::mem::replace(&mut name.held, true) {
            self.overlaps.fetch_add(1, Relaxed);
        }
        if name.greatest.is_some_and(|greatest| token <= greatest) {
            self.stale.fetch_add(1, Relaxed);
        }
        name.greatest = name.greatest.max(Some(token));
    }

    fn leave(&self, name: usize) {
        self.names[name].lock().unwrap().held = false;
    }

    fn grants(&self) -> [usize; NAMES] {
        self.names.each_ref().map(|name| name.lock().unwrap().grants)
    }

    /// Waits until each name was granted some more times.
    pub async fn until_all_go_on(&self) {
        let before = self.grants();
        let end = Clock::Boot.now() + PATIENCE;
        while self.grants().iter().zip(before).any(|(now, before)| *now < before + 10) {
            let (now, lost, refused) = (self.grants(), &self.lost, &self.refused);
            assert!(Clock::Boot.now() < end, "{before:?}, {now:?}, {lost:?}, {refused:?}");
            tokio::time::sleep(Duration::from_millis(10)).await;
        }
    }

    /// Returns the longest time between two grants, of which the second was after `since`.
    pub fn longest_pause_since(&self, since: Instant) -> Duration {
        let grants = self.grants.lock().unwrap();
        let pairs = grants.windows(2).filter(|pair| pair[1] > since);
        pairs.map(|pair| pair[1].since(pair[0])).max().unwrap_or_default()
    }

    /// Ends all workers.
    pub async fn finish(&self) {
        self.done.store(true, Relaxed);
        let workers = std::mem::take(&mut *self.workers.lock().unwrap());
        for worker in workers {
            worker.await.unwrap();
        }
    }

    /// Fails if a promise was broken.
    pub fn check(&self) {
        let grants: usize = self.grants().iter().sum();
        let (overlaps, stale) = (self.overlaps.load(Relaxed), self.stale.load(Relaxed));
        let (lost, refused) = (self.lost.lock().unwrap(), self.refused.lock().unwrap());
        println!("{grants} grants, {overlaps} overlaps, {stale} stale tokens");
        assert_eq!((overlaps, stale), (0, 0));
        assert!(lost.is_empty(), "lost: {lost:?}");
        assert!(refused.is_empty(), "waiters were turned away: {refused:?}");
    }
}

/// Holds a lock of its own until the end.
async fn keep(load: Arc<Load>, locks: Locks, client: usize) {
    let guard = locks.lock(format!("kept{client}")).unwrap().acquire().await.unwrap();
    while !load.done.load(Relaxed) {
        tokio::select! {
            reason = guard.lost() => {
                load.lost.lock().unwrap().push(format!("kept{client}: {reason}"));
                return;
            }
            () = tokio::time::sleep(Duration::from_millis(100)) => {}
        }
    }
    guard.release().await.unwrap();
}

/// Takes each name in turn, and notes that it has left before another worker can have the lock.
async fn work(load: Arc<Load>, locks: Locks, worker: usize) {
    for name in (worker..).map(|n| n % NAMES) {
        if load.done.load(Relaxed) {
            return;
        }
        let guard = match locks.lock(format!("job{name}")).unwrap().acquire().await {
            Ok(guard) => guard,
            Err(error) => {
                load.refused.lock().unwrap().push(error.to_string());
                continue;
            }
        };
        load.enter(name, guard.token());
        tokio::select! {
            reason = guard.lost() => load.lost.lock().unwrap().push(format!("job{name}: {reason}")),
            () = tokio::time::sleep(Duration::from_millis(3)) => {}
        }
        load.leave(name);
        drop(guard.release().await);
    }
}
