//! After a restart of the server that keeps its data, no client has lost a lock or a place.
//! kazoo#282 (acquire hangs after recovery), redisson#2515 (renewal stops after a connection
//! error).

use std::time::Duration;

use super::{Checked, Client, Harness, Outcome, ensure, keeps, property, scene::*};
use crate::{LockGuard, Locks};

property!(while_holding, while_waiting);

async fn while_holding(h: &dyn Harness) -> Checked {
    let (a, b) = (h.client().await?, h.client().await?);
    if let Some(reason) = forgetful(a.locks()) {
        return Ok(Outcome::Skipped(reason));
    }
    let mut ttl = outlasting(h, a.locks());
    loop {
        let name = fresh("restart-held");
        let guard = soon("acquire", lock(h, &*a, &name)?.ttl(ttl).acquire()).await??;
        let began = a.locks().driver().clock().now();
        h.restart().await?;
        // A restart that is longer than the lock proves nothing: try again with a longer TTL.
        let longer = (ttl * 2).min(*a.locks().guarantees().ttl.end());
        if a.locks().driver().clock().now().since(began) < ttl / 2 || longer == ttl {
            return outlives_a_restart(h, &*b, guard, ttl).await;
        }
        ttl = longer;
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
    let taken = soon("try_acquire", async {
        // The first call after a restart may find a dead connection.
        loop {
            match lock(h, other, &name)?.try_acquire().await {
                Err(error) if error.is_transient() => tokio::task::yield_now().await,
                answer => return Ok::<_, super::Failure>(answer?),
            }
        }
    })
    .await??;
    ensure!(taken.is_none(), "the lock was granted to another holder after a restart");
    // Renewals go on: the lock outlives its TTL.
    tokio::time::sleep(ttl + ttl / 2).await;
    keeps!(guard.is_valid(), "the lock was lost: it was not renewed after the restart");
    soon("release", guard.release()).await??;
    Ok(Outcome::Kept)
}

async fn while_waiting(h: &dyn Harness) -> Checked {
    let (name, a, b) = (fresh("restart-waiting"), h.client().await?, h.client().await?);
    if let Some(reason) = forgetful(a.locks()) {
        return Ok(Outcome::Skipped(reason));
    }
    let ttl = outlasting(h, a.locks());
    let guard = soon("acquire", lock(h, &*a, &name)?.ttl(ttl).acquire()).await??;
    let waiter = tokio::spawn(lock(h, &*b, &name)?.ttl(ttl).acquire());
    wait_for_queue(&*b, &name, 2).await?;
    h.restart().await?;
    soon("release", guard.release()).await??;
    let next = promised("the waiter's turn after the restart", waiter).await???;
    soon("release", next.release()).await??;
    Ok(Outcome::Kept)
}

/// A TTL that is longer than a restart, also of a server that takes seconds to start.
fn outlasting(h: &dyn Harness, locks: &Locks) -> Duration {
    (h.ttl() * 2).min(*locks.guarantees().ttl.end())
}

fn forgetful(locks: &Locks) -> Option<String> {
    let guarantees = locks.guarantees();
    (!guarantees.survives.restart)
        .then(|| format!("{} forgets its locks in a restart as it is configured", guarantees.store))
}
