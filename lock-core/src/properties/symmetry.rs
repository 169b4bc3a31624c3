//! A release or renewal of another attempt has no effect. Claims C4 and C7 of the documents;
//! etcd#22082 (a retried unlock deletes a newer lock of the same session), redisson#5698.

use super::{Done, Failure, Harness, ensure, keeps, property, scene::*};
use crate::{Attempt, LockGuard, LockName, Request, Result, Term};

property!(stale_release, retried_release, stale_renew);

/// A holder with an ended term releases late: its successor keeps the lock.
async fn stale_release(h: &dyn Harness) -> Done {
    let (name, a, b) = (fresh("stale-release"), h.client().await?, h.client().await?);
    let stale = fixed(h, &*a, &name).await?;
    let guard = promised("the next grant", lock(h, &*b, &name)?.acquire()).await??;
    // The result does not matter: "not mine" counts as released.
    let _ = soon("a stale release", stale.release()).await?;
    still_held(h, &*a, &name, &guard).await
}

/// The same release sent twice, while another attempt of the same client holds the lock.
async fn retried_release(h: &dyn Harness) -> Done {
    let (name, a) = (fresh("retried-release"), h.client().await?);
    let request = Request::new(name.clone(), h.ttl());
    let first = soon("acquire", a.locks().driver().acquire(request, Attempt::new())).await??;
    soon("release", first.release()).await??;
    let guard = acquire(h, &*a, &name).await?;
    let _ = soon("a retried release", first.release()).await?;
    still_held(h, &*a, &name, &guard).await
}

/// A holder with an ended term renews late: it gets an error, and its successor keeps the lock.
async fn stale_renew(h: &dyn Harness) -> Done {
    let (name, a, b) = (fresh("stale-renew"), h.client().await?, h.client().await?);
    let stale = fixed(h, &*a, &name).await?;
    let guard = promised("the next grant", lock(h, &*b, &name)?.acquire()).await??;
    let renewed = soon("a stale renew", stale.renew()).await?;
    ensure!(renewed.is_err(), "a holder renewed a lock that was granted to another one");
    still_held(h, &*a, &name, &guard).await?;
    soon("release", guard.release()).await??;
    let again = promised("a grant after a stale renew", lock(h, &*a, &name)?.acquire()).await??;
    keeps!(again.is_valid(), "the renewed lock was not free after its holder released it");
    Ok(())
}

/// A lock with a fixed term that is over: a driver's lease, so that no guard cleans up after it.
async fn fixed(
    h: &dyn Harness,
    client: &dyn super::Client,
    name: &LockName,
) -> Result<Box<dyn crate::Lease>, Failure> {
    let driver = client.locks().driver();
    let mut request = Request::new(name.clone(), h.ttl());
    request.term = Term::Fixed;
    let lease = soon("acquire", driver.acquire(request, Attempt::new())).await??;
    driver.clock().sleep_until(lease.validity().until()).await;
    if client.locks().guarantees().fixed_term == crate::FixedTerm::Client {
        // The client ends the term itself; lock-core does the same.
        soon("the end of a term", lease.release()).await??;
    }
    Ok(lease)
}

async fn still_held(
    h: &dyn Harness,
    other: &dyn super::Client,
    name: &LockName,
    guard: &LockGuard,
) -> Done {
    keeps!(guard.is_valid(), "the holder lost its lock to a stale call of another attempt");
    let taken = soon("try_acquire", lock(h, other, name)?.try_acquire()).await??;
    ensure!(taken.is_none(), "a stale call of another attempt freed the lock");
    Ok(())
}
