//! A holder that is gone never blocks the others for ever. Claims C2 and C3 of the documents.

use super::{Client, Done, Harness, property, scene::*};
use crate::LockGuard;

property!(holder_dropped, holder_crashed, holder_cut_off);

/// A dropped guard frees the lock at once, not after its TTL.
async fn holder_dropped(h: &dyn Harness) -> Done {
    let name = fresh("dropped");
    let (a, b) = (h.client().await?, h.client().await?);
    let guard = acquire(h, &*a, &name).await?;
    let waiter = queue_up(h, &*b, &name, 1).await?;
    drop(guard);
    drop(within(h.ttl() / 2, "a grant after a guard was dropped", waiter).await???);
    Ok(())
}

async fn holder_crashed(h: &dyn Harness) -> Done {
    let (a, b) = (h.client().await?, h.client().await?);
    let name = fresh("crashed");
    let guard = acquire(h, &*a, &name).await?;
    let waiter = queue_up(h, &*b, &name, 1).await?;
    a.crash().await?;
    replaced_in_time(h, &*b, waiter).await?;
    drop(guard);
    Ok(())
}

async fn holder_cut_off(h: &dyn Harness) -> Done {
    let (a, b) = (h.client().await?, h.client().await?);
    let name = fresh("cut-off");
    let guard = acquire(h, &*a, &name).await?;
    let waiter = queue_up(h, &*b, &name, 1).await?;
    a.cut().await?;
    replaced_in_time(h, &*b, waiter).await?;
    drop(guard);
    Ok(())
}

async fn replaced_in_time(
    h: &dyn Harness,
    client: &dyn Client,
    waiter: tokio::task::JoinHandle<crate::Result<LockGuard>>,
) -> Result<(), super::Failure> {
    let granted = within(expiry_limit(h, client), "a grant after the holder was gone", waiter);
    Ok(granted.await???.release().await?)
}
