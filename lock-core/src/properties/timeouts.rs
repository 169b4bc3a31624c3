//! Zero and tiny limits are answered, not waited for, and a wait in vain says who holds the lock.
//! distributed-lock-rs: `Some(0)` waits for ever on PostgreSQL.

use std::time::Duration;

use super::{
    Checked, Failure, Harness, Missed, Outcome, as_mutex::Mutex, ensure, property, scene::*,
};
use crate::Error;

property!(zero_and_tiny_waits, a_vain_wait_names_the_holder, zero_and_odd_ttls);

async fn zero_and_tiny_waits(h: &dyn Harness) -> Checked {
    let (name, a, b) = (fresh("tiny-wait"), h.client().await?, h.client().await?);
    let guard = acquire(h, &*a, &name).await?;
    for wait in [
        Duration::ZERO,
        Duration::from_nanos(1),
        Duration::from_micros(100),
        Duration::from_millis(3),
    ] {
        vain(&lock(h, &*b, &name)?.wait(wait)).await?;
    }
    queue_becomes(&*a, &name, 1).await?;
    soon("release", guard.release()).await??;
    let free = soon("acquire", lock(h, &*b, &name)?.wait(Duration::ZERO).acquire()).await?;
    let refused = |error| Missed(format!("a free lock with a wait of zero: {error}"));
    free.map_err(refused)?.release().await?;
    nothing_left(h).await?;
    Ok(Outcome::Kept)
}

async fn a_vain_wait_names_the_holder(h: &dyn Harness) -> Checked {
    let (name, a, b, c) = (fresh("blame"), h.client().await?, h.client().await?, h.client().await?);
    if !shows_waiters(&*c) {
        let store = c.locks().guarantees().store;
        return Ok(Outcome::Skipped(format!("{store} keeps no record of holders in this mode")));
    }
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
    ensure!(holder.since.is_some(), "it does not say since when: {holder:?}");
    ensure!(*position == Some(2), "position {position:?} instead of 2");
    ensure!(*waited >= wait, "waited only {waited:?} of {wait:?}");
    soon("release", guard.release()).await??;
    drop(promised("the waiter's turn", waiter).await???);
    Ok(Outcome::Kept)
}

async fn zero_and_odd_ttls(h: &dyn Harness) -> Checked {
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
    nothing_left(h).await?;
    Ok(Outcome::Kept)
}

/// An acquire that must time out.
async fn vain(lock: &Mutex) -> Result<Error, Failure> {
    match promised("the end of a limited wait", lock.acquire()).await? {
        Err(error @ Error::WaitTimeout { .. }) => Ok(error),
        Err(error) => Err(error.into()),
        Ok(guard) => Err(format!("a limited wait ended as {guard:?}").into()),
    }
}
