//! A holder that is gone never blocks the others for ever. Claims C2 and C3 of the documents.

use super::{Client, Done, Harness, property, scene::*};
use crate::BoxFuture;

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
    replaced_in_time(h, |holder| holder.crash()).await
}

async fn holder_cut_off(h: &dyn Harness) -> Done {
    replaced_in_time(h, |holder| holder.cut()).await
}

async fn replaced_in_time(h: &dyn Harness, goes: fn(&dyn Client) -> BoxFuture<'_, Done>) -> Done {
    let (name, a, b) = (fresh("gone"), h.client().await?, h.client().await?);
    let guard = acquire(h, &*a, &name).await?;
    let waiter = queue_up(h, &*b, &name, 1).await?;
    goes(&*a).await?;
    let granted = within(expiry_limit(h, &*b), "a grant after the holder was gone", waiter);
    granted.await???.release().await?;
    drop(guard);
    Ok(())
}
