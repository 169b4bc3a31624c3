//! A wait that times out returns a timeout, never an outage: also in a crowd of waits that end at
//! the same moment, and also if the store does not name the holder.

use tokio::task::JoinSet;

use super::{Done, Harness, Missed, keeps, property, scene::*};
use crate::{Error, LockGuard, Result};

property!(a_crowd, while_the_store_is_silent);

/// The waits of one client.
const CROWD: usize = 40;
/// Several waits, which share a look.
const SOME: usize = 10;

async fn a_crowd(h: &dyn Harness) -> Done {
    let (name, a, b) = (fresh("crowd"), h.client().await?, h.client().await?);
    let guard = acquire(h, &*a, &name).await?;
    let lock = lock(h, &*b, &name)?.wait(h.ttl());
    all_in_vain((0..CROWD).map(|_| lock.acquire()).collect(), true).await?;
    keeps!(guard.is_valid(), "waits of others cost the holder its lock");
    queue_becomes(&*a, &name, 1).await?;
    soon("release", guard.release()).await??;
    nothing_left(h).await
}

/// The store has answered that they wait, and then answers nothing more: slower than any limit.
async fn while_the_store_is_silent(h: &dyn Harness) -> Done {
    let (name, a, b) = (fresh("silent"), h.client().await?, h.client().await?);
    let guard = acquire(h, &*a, &name).await?;
    // Long enough that no wait ends because the store was out of reach for a TTL.
    let ttl = (h.ttl() * 3).min(*b.locks().guarantees().ttl.end());
    let lock = lock(h, &*b, &name)?.ttl(ttl).wait(h.ttl() / 2);
    let waits = (0..SOME).map(|_| lock.acquire()).collect();
    // Asked by the client that waits: its own answers come before this one.
    wait_for_queue(&*b, &name, SOME + 1).await?;
    b.cut_replies().await?;
    all_in_vain(waits, shows_waiters(&*a)).await?;
    b.heal().await?;
    queue_becomes(&*a, &name, 1).await?;
    keeps!(guard.is_valid(), "the waiters' silence cost the holder its lock");
    soon("release", guard.release()).await??;
    nothing_left(h).await
}

/// A wait that got no answer from the store ends as an outage. Only a store that shows its waiters
/// proves that all waits were answered before it fell silent.
async fn all_in_vain(mut waits: JoinSet<Result<LockGuard>>, answered: bool) -> Done {
    while let Some(end) = promised("the end of a limited wait", waits.join_next()).await? {
        match end? {
            Err(Error::WaitTimeout { .. }) => {}
            Err(Error::Unavailable { .. }) if !answered => {}
            Err(error) => {
                return Err(Missed(format!("a wait in vain ended as {error:?}")).into());
            }
            Ok(guard) => return Err(format!("a wait in vain ended as {guard:?}").into()),
        }
    }
    Ok(())
}
