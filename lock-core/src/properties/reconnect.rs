//! After a restart of the server that keeps its data, no client has lost a lock or a place.
//! kazoo#282 (acquire hangs after recovery), redisson#2515 (renewal stops after a connection
//! error).

use std::time::Duration;

use super::{Checked, Client, Failure, Harness, Outcome, ensure, keeps, property, scene::*};
use crate::{LockGuard, LockName, Locks};

property!(while_holding, while_waiting);

async fn while_holding(h: &dyn Harness) -> Checked {
    let (a, b) = (h.client().await?, h.client().await?);
    if let Some(reason) = forgetful(a.locks()) {
        return Ok(Outcome::Skipped(reason));
    }
    let mut ttl = outlasting(h, a.locks());
    loop {
        let guard = acquired(h, &*a, &fresh("restart-held"), ttl).await?;
        match restart(h, a.locks(), ttl).await? {
            None => return outlives_a_restart(h, &*b, guard, ttl).await,
            Some(longer) => ttl = longer,
        }
        // It may have ended meanwhile.
        let _ = soon("release", guard.release()).await?;
    }
}

async fn outlives_a_restart(
    h: &dyn Harness,
    other: &dyn Client,
    guard: LockGuard,
    ttl: Duration,
) -> Checked {
    let name = guard.name().clone();
    let wanted = lock(h, other, &name)?;
    let taken = once_back("try_acquire", || wanted.try_acquire()).await?;
    ensure!(taken.is_none(), "the lock was granted to another holder after a restart");
    // Renewals go on: the lock outlives its TTL.
    tokio::time::sleep(ttl + ttl / 2).await;
    keeps!(guard.is_valid(), "the lock was lost: it was not renewed after the restart");
    soon("release", guard.release()).await??;
    Ok(Outcome::Kept)
}

async fn while_waiting(h: &dyn Harness) -> Checked {
    let (a, b) = (h.client().await?, h.client().await?);
    if let Some(reason) = forgetful(a.locks()) {
        return Ok(Outcome::Skipped(reason));
    }
    let mut ttl = outlasting(h, a.locks());
    loop {
        let name = fresh("restart-waiting");
        let guard = acquired(h, &*a, &name, ttl).await?;
        let waiter = tokio::spawn(lock(h, &*b, &name)?.ttl(ttl).acquire());
        wait_for_queue(&*b, &name, 2).await?;
        let longer = restart(h, a.locks(), ttl).await?;
        let released = soon("release", guard.release()).await?;
        if let Some(longer) = longer {
            waiter.abort();
            ttl = longer;
            continue;
        }
        released?;
        let next = promised("the waiter's turn after the restart", waiter).await???;
        soon("release", next.release()).await??;
        return Ok(Outcome::Kept);
    }
}

/// Acquires, perhaps right after a restart.
async fn acquired(
    h: &dyn Harness,
    client: &dyn Client,
    name: &LockName,
    ttl: Duration,
) -> Result<LockGuard, Failure> {
    let wanted = lock(h, client, name)?.ttl(ttl);
    once_back("acquire", || wanted.acquire()).await
}

/// Calls until the store answers: the first calls after a restart may find a dead connection.
async fn once_back<T, F: Future<Output = crate::Result<T>>>(
    what: &str,
    call: impl Fn() -> F,
) -> Result<T, Failure> {
    let answered = async {
        loop {
            match call().await {
                Err(error) if error.is_transient() => tokio::task::yield_now().await,
                answer => return answer,
            }
        }
    };
    Ok(soon(what, answered).await??)
}

/// A TTL that is longer than a restart, also of a server that takes seconds to start.
fn outlasting(h: &dyn Harness, locks: &Locks) -> Duration {
    (h.ttl() * 2).min(*locks.guarantees().ttl.end())
}

/// Restarts the server. A restart of more than half of the TTL proves nothing: returns a longer TTL
/// to try again with, if the store has one.
async fn restart(
    h: &dyn Harness,
    locks: &Locks,
    ttl: Duration,
) -> Result<Option<Duration>, Failure> {
    let clock = locks.driver().clock();
    let began = clock.now();
    h.restart().await?;
    let longer = (ttl * 2).min(*locks.guarantees().ttl.end());
    Ok((clock.now().since(began) >= ttl / 2 && longer > ttl).then_some(longer))
}

fn forgetful(locks: &Locks) -> Option<String> {
    let guarantees = locks.guarantees();
    (!guarantees.survives.restart)
        .then(|| format!("{} forgets its locks in a restart as it is configured", guarantees.store))
}
