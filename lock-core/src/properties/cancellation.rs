//! An acquire that is dropped at any moment leaves nothing behind. redis-py#3847 (a cancelled
//! release is a deadlock), CURATOR-79, redisson PR#7223 (a timed-out attempt stays in the queue).

use std::{
    future::Future,
    pin::Pin,
    sync::{
        Arc,
        atomic::{AtomicU64, Ordering},
    },
    task::Poll,
    time::Duration,
};

use tokio::{task::JoinSet, time::timeout};

use super::{Done, Harness, as_mutex::Mutex, keeps, property, scene::*};
use crate::LockGuard;

property!(while_free, while_held, while_contended);

const DROPS: u32 = 60;

/// No other client wants the lock: the drop hits the request and its answer.
async fn while_free(h: &dyn Harness) -> Done {
    let (name, client) = (fresh("drop-free"), h.client().await?);
    let lock = lock(h, &*client, &name)?;
    drop_many(&lock).await?;
    free_and_empty(h, &lock).await
}

/// Another client holds the lock all the time: the drop hits the wait.
async fn while_held(h: &dyn Harness) -> Done {
    let (name, a, b) = (fresh("drop-held"), h.client().await?, h.client().await?);
    let guard = acquire(h, &*a, &name).await?;
    let lock = lock(h, &*b, &name)?;
    drop_many(&lock).await?;
    queue_becomes(&*a, &name, 1).await?;
    keeps!(guard.is_valid(), "dropped attempts of others cost the holder its lock");
    soon("release", guard.release()).await??;
    free_and_empty(h, &lock).await
}

/// The lock changes hands all the time: the drop hits the grant.
async fn while_contended(h: &dyn Harness) -> Done {
    let (name, a, b) = (fresh("drop-contended"), h.client().await?, h.client().await?);
    let busy = lock(h, &*a, &name)?;
    let (rounds, mut worker) = (Arc::new(AtomicU64::new(0)), JoinSet::new());
    let done = rounds.clone();
    worker.spawn(async move {
        for _ in 0..DROPS {
            busy.acquire().await?.release().await?;
            done.fetch_add(1, Ordering::SeqCst);
        }
        Ok(())
    });
    let lock = lock(h, &*b, &name)?;
    drop_many(&lock).await?;
    all_done("the other worker", worker, || rounds.load(Ordering::SeqCst)).await?;
    free_and_empty(h, &lock).await
}

/// Drops acquires after a few polls, and after a few milliseconds.
async fn drop_many(lock: &Mutex) -> Done {
    for n in 0..DROPS {
        let mut attempt = Box::pin(lock.acquire());
        match n % 2 {
            0 => drop(poll_times(attempt.as_mut(), n / 8 + 1).await),
            _ => drop(timeout(Duration::from_micros(u64::from(n) * 97), attempt.as_mut()).await),
        }
        drop(attempt);
    }
    Ok(())
}

async fn poll_times<F: Future<Output = crate::Result<LockGuard>>>(
    mut future: Pin<&mut F>,
    polls: u32,
) -> Option<F::Output> {
    for _ in 0..polls {
        if let Poll::Ready(answer) = poll_once(future.as_mut()).await {
            return Some(answer);
        }
        tokio::task::yield_now().await;
    }
    None
}

async fn free_and_empty(h: &dyn Harness, lock: &Mutex) -> Done {
    promised("acquire after the dropped ones", lock.acquire()).await??.release().await?;
    nothing_left(h).await
}
