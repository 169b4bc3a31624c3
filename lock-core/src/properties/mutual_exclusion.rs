//! At most one attempt holds a name. Claim C1 of the documents; ShedLock's FuzzTester.

use std::sync::{
    Arc,
    atomic::{AtomicU64, Ordering},
};

use super::{Checked, Failure, Harness, Outcome, as_mutex::Mutex, ensure, property, scene::*};
use crate::{LockName, Locks};

property!(contention);

const CLIENTS: usize = 4;
const WORKERS: usize = 16;
const ROUNDS: u64 = 8;

/// Workers of several clients add to a counter that nothing but the lock protects.
async fn contention(h: &dyn Harness) -> Checked {
    let name = fresh("contention");
    let (inside, counter) = (Arc::new(AtomicU64::new(0)), Arc::new(AtomicU64::new(0)));
    let mut clients = Vec::new();
    for _ in 0..CLIENTS {
        clients.push(h.client().await?);
    }
    let mut workers = Vec::new();
    for n in 0..WORKERS {
        let client = &*clients[n % CLIENTS];
        let (lock, locks) = (lock(h, client, &name)?, client.locks().clone());
        workers.push(tokio::spawn(work(
            lock,
            locks,
            name.clone(),
            inside.clone(),
            counter.clone(),
        )));
    }
    for worker in workers {
        soon("contention", worker).await???;
    }
    let (done, expected) = (counter.load(Ordering::SeqCst), WORKERS as u64 * ROUNDS);
    ensure!(done == expected, "{expected} increments under the lock counted only {done}");
    Ok(Outcome::Kept)
}

async fn work(
    lock: Mutex,
    locks: Locks,
    name: LockName,
    inside: Arc<AtomicU64>,
    counter: Arc<AtomicU64>,
) -> Result<(), Failure> {
    for _ in 0..ROUNDS {
        let guard = lock.acquire().await?;
        let others = inside.fetch_add(1, Ordering::SeqCst);
        let read = counter.load(Ordering::SeqCst);
        // A round trip inside: a second grant must have the time to happen.
        soon("inspect", locks.inspect(&name)).await??;
        counter.store(read + 1, Ordering::SeqCst);
        inside.fetch_sub(1, Ordering::SeqCst);
        ensure!(others == 0, "{others} others held the lock at the same time");
        guard.release().await?;
    }
    Ok(())
}
