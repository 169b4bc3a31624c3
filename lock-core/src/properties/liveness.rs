//! A holder that is gone never blocks the others for ever. Claims C2 and C3 of the documents.

use tokio::time::timeout;

use super::{Checked, Client, Harness, Missed, Outcome, property, scene::*};
use crate::LockGuard;

property!(holder_dropped, holder_crashed, holder_cut_off);

/// A dropped guard frees the lock at once, not after its TTL.
async fn holder_dropped(h: &dyn Harness) -> Checked {
    let name = fresh("dropped");
    let (a, b) = (h.client().await?, h.client().await?);
    let guard = acquire(h, &*a, &name).await?;
    let waiter = queue_up(h, &*b, &name, 1).await?;
    drop(guard);
    let quick = h.ttl() / 2;
    match timeout(quick, waiter).await {
        Ok(granted) => drop(granted??),
        Err(_) => {
            return Err(Missed(format!("not free {quick:?} after the guard was dropped")).into());
        }
    }
    Ok(Outcome::Kept)
}

async fn holder_crashed(h: &dyn Harness) -> Checked {
    let (a, b) = (h.client().await?, h.client().await?);
    let name = fresh("crashed");
    let guard = acquire(h, &*a, &name).await?;
    let waiter = queue_up(h, &*b, &name, 1).await?;
    a.crash().await?;
    replaced_in_time(h, &*b, waiter).await?;
    drop(guard);
    Ok(Outcome::Kept)
}

async fn holder_cut_off(h: &dyn Harness) -> Checked {
    let (a, b) = (h.client().await?, h.client().await?);
    let name = fresh("cut-off");
    let guard = acquire(h, &*a, &name).await?;
    let waiter = queue_up(h, &*b, &name, 1).await?;
    a.cut().await?;
    replaced_in_time(h, &*b, waiter).await?;
    drop(guard);
    Ok(Outcome::Kept)
}

async fn replaced_in_time(
    h: &dyn Harness,
    client: &dyn Client,
    waiter: tokio::task::JoinHandle<crate::Result<LockGuard>>,
) -> Result<(), super::Failure> {
    let limit = expiry_limit(h, client);
    match timeout(limit, waiter).await {
        Ok(granted) => Ok(granted??.release().await?),
        Err(_) => {
            let what = format!("the next waiter had no lock {limit:?} after the holder was gone");
            Err(Missed(what).into())
        }
    }
}
