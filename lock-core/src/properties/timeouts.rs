//! Zero and tiny limits return at once, and a wait that times out names the holder.
//! distributed-lock-rs: `Some(0)` waits for ever on PostgreSQL.

use std::time::Duration;

use super::{Done, Failure, Harness, Missed, as_mutex::Mutex, ensure, property, scene::*};
use crate::{Error, Holder, wall_clock};

/// A store may keep times in whole milliseconds.
const ROUNDED: Duration = Duration::from_millis(5);

property!(zero_and_tiny_waits, a_vain_wait_names_the_holder, since_when, zero_and_odd_ttls);

async fn zero_and_tiny_waits(h: &dyn Harness) -> Done {
    let (name, a, b) = (fresh("tiny-wait"), h.client().await?, h.client().await?);
    let guard = acquire(h, &*a, &name).await?;
    for wait in [0, 1, 100_000, 3_000_000].map(Duration::from_nanos) {
        vain(&lock(h, &*b, &name)?.wait(wait)).await?;
    }
    queue_becomes(&*a, &name, 1).await?;
    soon("release", guard.release()).await??;
    let free = soon("acquire", lock(h, &*b, &name)?.wait(Duration::ZERO).acquire()).await?;
    let refused = |error| Missed(format!("a free lock with a wait of zero: {error}"));
    free.map_err(refused)?.release().await?;
    nothing_left(h).await
}

async fn a_vain_wait_names_the_holder(h: &dyn Harness) -> Done {
    let (name, a, b, c) = (fresh("blame"), h.client().await?, h.client().await?, h.client().await?);
    needs_waiters(&*c)?;
    let guard =
        soon("acquire", lock(h, &*a, &name)?.holder("the nightly report").acquire()).await??;
    let waiter = queue_up(h, &*b, &name, 1).await?;
    let wait = h.ttl() / 2;
    let error = vain(&lock(h, &*c, &name)?.wait(wait)).await?;
    let Error::WaitTimeout { waited, holder, position, .. } = &error else {
        return Err(format!("a wait in vain ended as {error:?}").into());
    };
    let holder = holder.as_ref().ok_or("it does not say who holds the lock")?;
    ensure!(holder.description.as_deref() == Some("the nightly report"), "it blames {holder:?}");
    let since = holder.granted_at.or(holder.queued_at);
    ensure!(since.is_some(), "it does not say since when: {holder:?}");
    ensure!(*position == Some(2), "position {position:?} instead of 2");
    ensure!(*waited >= wait, "waited only {waited:?} of {wait:?}");
    soon("release", guard.release()).await??;
    drop(promised("the waiter's turn", waiter).await???);
    Ok(())
}

/// A client that has waited does not hold the lock since it came: operators rely on that. Times of
/// a store are compared only with each other: its clock may differ from ours.
async fn since_when(h: &dyn Harness) -> Done {
    let (name, a, b) = (fresh("since"), h.client().await?, h.client().await?);
    needs_waiters(&*a)?;
    let guard = acquire(h, &*a, &name).await?;
    let waiter = queue_up(h, &*b, &name, 1).await?;
    let there = wall_clock();
    let shown = queue(&*a, &name).await?;
    let [first, second] = shown.as_slice() else {
        return Err(format!("a holder and a waiter are shown as {shown:?}").into());
    };
    let Holder { queued_at: Some(queued_at), granted_at: None, .. } = second.holder else {
        return Err(format!("a waiter is shown as {second:?}").into());
    };
    let since = first.holder.granted_at.or(first.holder.queued_at);
    let earlier = since.is_some_and(|since| since <= queued_at + ROUNDED);
    ensure!(earlier, "the waiter came at {queued_at:?}, the holder is shown as {first:?}");
    // The gap between the two times.
    tokio::time::sleep(h.ttl() / 10).await;
    let waited = wall_clock().duration_since(there)?;
    soon("release", guard.release()).await??;
    let guard = promised("the waiter's turn", waiter).await???;
    let shown = queue(&*a, &name).await?;
    let holder = &shown.first().ok_or("the holder is not shown")?.holder;
    let kept = holder.granted_at.is_none_or(|at| at + ROUNDED >= queued_at + waited);
    ensure!(kept, "queued at {queued_at:?}, granted {waited:?} later, shown as {holder:?}");
    let kept = holder.queued_at.is_none_or(|at| at == queued_at);
    ensure!(kept, "queued at {queued_at:?}, shown as {holder:?}");
    soon("release", guard.release()).await??;
    nothing_left(h).await
}

async fn zero_and_odd_ttls(h: &dyn Harness) -> Done {
    let client = h.client().await?;
    let longest = *client.locks().guarantees().ttl.end();
    for ttl in
        [Duration::ZERO, Duration::from_nanos(1), longest + Duration::from_secs(1), Duration::MAX]
    {
        let refused =
            soon("acquire", client.locks().lock(fresh("ttl"))?.ttl(ttl).acquire()).await?;
        ensure!(
            matches!(refused, Err(Error::InvalidOption { .. })),
            "a TTL of {ttl:?}: {refused:?}"
        );
    }
    nothing_left(h).await
}

/// An acquire that must time out.
async fn vain(lock: &Mutex) -> Result<Error, Failure> {
    match promised("the end of a limited wait", lock.acquire()).await? {
        Err(error @ Error::WaitTimeout { .. }) => Ok(error),
        Err(error) => Err(error.into()),
        Ok(guard) => Err(format!("a limited wait ended as {guard:?}").into()),
    }
}
