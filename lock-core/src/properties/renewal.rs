//! The watchdog keeps a lock as long as its holder runs; a fixed term and a maximum hold time end
//! it. Claim C6 of the documents; DistributedLock#169 (an endless loop holds a lock for ever).

use std::time::Duration;

use tokio::time::timeout;

use super::{Done, Harness, Missed, ensure, keeps, property, scene::*};
use crate::{Error, LossReason};

property!(
    outlives_its_ttl,
    a_fixed_term_ends,
    a_manual_renewal_extends,
    a_maximum_hold_ends,
    a_least_hold_outlasts_the_release,
    work_stops_with_the_lock
);

async fn outlives_its_ttl(h: &dyn Harness) -> Done {
    let (name, a, b) = (fresh("renewed"), h.client().await?, h.client().await?);
    let guard = acquire(h, &*a, &name).await?;
    if let Ok(reason) = timeout(h.ttl() * 3, guard.lost()).await {
        return Err(Missed(format!("lost although nothing was wrong: {reason}")).into());
    }
    let taken = soon("try_acquire", lock(h, &*b, &name)?.try_acquire()).await??;
    ensure!(taken.is_none(), "granted to another holder while the first one held it");
    soon("release", guard.release()).await??;
    Ok(())
}

async fn a_fixed_term_ends(h: &dyn Harness) -> Done {
    let (name, a, b) = (fresh("fixed"), h.client().await?, h.client().await?);
    let guard = soon("acquire", lock(h, &*a, &name)?.fixed_term().acquire()).await??;
    let waiter = queue_up(h, &*b, &name, 1).await?;
    let reason = promised("the end of the term", guard.lost()).await?;
    keeps!(reason == LossReason::TermOver, "the term ended as {reason:?}");
    let next = within(expiry_limit(h, &*b), "the end of the term in the store", waiter);
    next.await???.release().await?;
    Ok(())
}

async fn a_manual_renewal_extends(h: &dyn Harness) -> Done {
    let (name, a) = (fresh("manual"), h.client().await?);
    let guard = soon("acquire", lock(h, &*a, &name)?.fixed_term().acquire()).await??;
    tokio::time::sleep(h.ttl() / 2).await;
    let before = guard.remaining();
    soon("renew", guard.renew()).await??;
    ensure!(
        guard.remaining() > before,
        "{before:?} left before a renewal, {:?} after",
        guard.remaining()
    );
    soon("release", guard.release()).await??;
    Ok(())
}

async fn a_maximum_hold_ends(h: &dyn Harness) -> Done {
    let (name, a, b) = (fresh("max-hold"), h.client().await?, h.client().await?);
    let lock = lock(h, &*a, &name)?.max_hold(h.ttl() / 4);
    let guard = soon("acquire", lock.acquire()).await??;
    let reason = promised("the end of the hold", guard.lost()).await?;
    keeps!(reason == LossReason::MaxHold, "the hold ended as {reason:?}");
    // Given back at once, not left to the TTL.
    let next = super::scene::lock(h, &*b, &name)?.acquire();
    within(h.ttl() / 2, "a grant after the maximum hold", next).await??.release().await?;
    Ok(())
}

/// It is renewed for longer than a TTL after its holder has released it, and free then.
async fn a_least_hold_outlasts_the_release(h: &dyn Harness) -> Done {
    let (name, a, b) = (fresh("at-least"), h.client().await?, h.client().await?);
    let least = h.ttl() + h.ttl() / 2;
    let asked = a.locks().driver().clock().now();
    let guard = soon("acquire", lock(h, &*a, &name)?.at_least(least).acquire()).await??;
    let token = guard.token();
    drop(guard);
    let next = lock(h, &*b, &name)?.acquire();
    let next = within(least + PATIENCE, "a grant after the least time", next).await??;
    let kept = b.locks().driver().clock().now().since(asked);
    keeps!(kept >= least, "given back after {kept:?}, and not after {least:?}");
    ensure!(next.token() > token, "{} was granted after {token}", next.token());
    soon("release", next.release()).await??;
    Ok(())
}

async fn work_stops_with_the_lock(h: &dyn Harness) -> Done {
    let (name, a) = (fresh("run"), h.client().await?);
    let fine = lock(h, &*a, &name)?.run(|held| async move { held.token() });
    soon("run", fine).await??;
    let stopped = lock(h, &*a, &name)?
        .max_hold(Duration::from_millis(100))
        .run(|_| std::future::pending::<()>());
    match promised("the end of the work", stopped).await? {
        Err(Error::Lost { .. }) => Ok(()),
        other => Err(Missed(format!("work without its lock ended as {other:?}")).into()),
    }
}
