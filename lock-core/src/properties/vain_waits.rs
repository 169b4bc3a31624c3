//! A wait in vain ends as one, and never as an outage: also of a crowd whose waits end at the same
//! moment, and also if the store does not say who was in the way.

use std::time::Duration;

use tokio::task::JoinSet;

use super::{Checked, Client, Failure, Harness, Missed, Outcome, keeps, property, scene::*};
use crate::{Error, LockName};

property!(a_crowd, while_the_store_is_silent);

/// The waits of one client.
const CROWD: usize = 40;
/// Several, which share a look.
const SOME: usize = 10;

async fn a_crowd(h: &dyn Harness) -> Checked {
    let (name, a, b) = (fresh("crowd"), h.client().await?, h.client().await?);
    let guard = acquire(h, &*a, &name).await?;
    all_in_vain(waits(h, &*b, &name, h.ttl(), h.ttl(), CROWD)?, true).await?;
    keeps!(guard.is_valid(), "waits of others cost the holder its lock");
    queue_becomes(&*a, &name, 1).await?;
    soon("release", guard.release()).await??;
    nothing_left(h).await?;
    Ok(Outcome::Kept)
}

/// The store has answered that they wait, and answers nothing more: slower than any limit.
async fn while_the_store_is_silent(h: &dyn Harness) -> Checked {
    let (name, a, b) = (fresh("silent"), h.client().await?, h.client().await?);
    let guard = acquire(h, &*a, &name).await?;
    // Long enough that no wait is over because the store was out of reach for a TTL.
    let ttl = (h.ttl() * 3).min(*b.locks().guarantees().ttl.end());
    let waits = waits(h, &*b, &name, ttl, h.ttl() / 2, SOME)?;
    wait_for_queue(&*a, &name, SOME + 1).await?;
    b.cut_replies().await?;
    all_in_vain(waits, shows_waiters(&*a)).await?;
    b.heal().await?;
    queue_becomes(&*a, &name, 1).await?;
    keeps!(guard.is_valid(), "the waiters' silence cost the holder its lock");
    soon("release", guard.release()).await??;
    nothing_left(h).await?;
    Ok(Outcome::Kept)
}

/// Waits that end after `limit`, whose entries have a TTL of their own.
fn waits(
    h: &dyn Harness,
    client: &dyn Client,
    name: &LockName,
    ttl: Duration,
    limit: Duration,
    count: usize,
) -> Result<JoinSet<crate::Result<crate::LockGuard>>, Failure> {
    let lock = lock(h, client, name)?.ttl(ttl).wait(limit);
    Ok((0..count).map(|_| lock.acquire()).collect())
}

/// A wait that the store has not answered once ends as an outage. Only a store that shows its waiters
/// tells that all were answered before it fell silent.
async fn all_in_vain(
    mut waits: JoinSet<crate::Result<crate::LockGuard>>,
    answered: bool,
) -> Result<(), Failure> {
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
