//! At most one attempt holds a name. Claim C1 of the documents; ShedLock's FuzzTester.

use std::sync::{
    Arc,
    atomic::{AtomicU64, Ordering},
};

use tokio::task::JoinSet;

use super::{Done, Harness, ensure, property, scene::*};
use crate::Error;

property!(contention);

const CLIENTS: usize = 4;
const WORKERS: usize = 16;
const ROUNDS: u64 = 8;

/// Workers of several clients add to a counter that only the lock protects.
async fn contention(h: &dyn Harness) -> Done {
    let name = fresh("contention");
    let (inside, counter) = (Arc::new(AtomicU64::new(0)), Arc::new(AtomicU64::new(0)));
    let mut clients = Vec::new();
    for _ in 0..CLIENTS {
        clients.push(h.client().await?);
    }
    let mut workers = JoinSet::new();
    for n in 0..WORKERS {
        let client = &*clients[n % CLIENTS];
        let (lock, locks, name) = (lock(h, client, &name)?, client.locks().clone(), name.clone());
        let (inside, counter) = (inside.clone(), counter.clone());
        workers.spawn(async move {
            for _ in 0..ROUNDS {
                let guard = lock.acquire().await?;
                let others = inside.fetch_add(1, Ordering::SeqCst);
                let read = counter.load(Ordering::SeqCst);
                // A round trip inside: a second grant must have the time to happen. A worker that
                // loses its lock leaves.
                let looked = tokio::select! {
                    biased;
                    reason = guard.lost() => Err(Error::Lost { name: name.clone(), reason }),
                    queue = soon("inspect", locks.inspect(&name)) => queue?,
                };
                if looked.is_ok() {
                    counter.store(read + 1, Ordering::SeqCst);
                }
                inside.fetch_sub(1, Ordering::SeqCst);
                ensure!(others == 0, "{others} others held the lock at the same time");
                looked?;
                guard.release().await?;
            }
            Ok(())
        });
    }
    all_done("contention", workers, || counter.load(Ordering::SeqCst)).await?;
    let (done, expected) = (counter.load(Ordering::SeqCst), WORKERS as u64 * ROUNDS);
    ensure!(done == expected, "{expected} increments under the lock counted only {done}");
    Ok(())
}
