//! A running holder is notified of its loss before another client is granted the lock: once, and
//! never on a normal release. DistributedLock#133, etcd#6127, consul#18271, etcd#19597 (a waiter
//! with a dead session goes on waiting).

use std::time::Duration;

use tokio::time::timeout;

use super::{Client, Done, Failure, Harness, Missed, ensure, keeps, property, scene::*};
use crate::{Error, Instant, LockGuard, LossReason};

property!(
    told_when_cut_off,
    told_when_renewals_hang,
    work_ends_before_the_next_grant,
    told_when_deleted,
    told_once,
    not_told_of_a_release,
    a_waiter_is_told_too,
);

async fn told_when_cut_off(h: &dyn Harness) -> Done {
    let (a, b) = (h.client().await?, h.client().await?);
    let (reason, next) = told_before_the_next_grant(h, [&*a, &*b], a.cut()).await?;
    keeps!(reason == LossReason::Expired, "the reason is {reason:?}");
    // It comes back: what it has left there does not touch the next holder, and it works again.
    a.heal().await?;
    let again = lock(h, &*a, &fresh("again"))?.acquire();
    promised("a lock for the client that is back", again).await??.release().await?;
    let busy = soon("try_acquire", lock(h, &*a, next.name())?.try_acquire()).await??;
    ensure!(busy.is_none() && next.is_valid(), "one that is back cost the next holder its lock");
    soon("release", next.release()).await??;
    Ok(())
}

/// Renewals arrive but their answers do not. The holder must rely on the answers only; it may be
/// notified early, never late.
async fn told_when_renewals_hang(h: &dyn Harness) -> Done {
    let (a, b) = (h.client().await?, h.client().await?);
    let (_, next) = told_before_the_next_grant(h, [&*a, &*b], a.cut_replies()).await?;
    soon("release", next.release()).await??;
    Ok(())
}

/// Work that is polled all the time is never polled again after the next grant.
async fn work_ends_before_the_next_grant(h: &dyn Harness) -> Done {
    let (name, a, b) = (fresh("work"), h.client().await?, h.client().await?);
    let clock = a.locks().driver().clock();
    let (seen, last_poll) = tokio::sync::watch::channel(clock.now());
    let work = lock(h, &*a, &name)?.fixed_term().run(move |_| async move {
        loop {
            seen.send_replace(clock.now());
            tokio::time::sleep(Duration::from_millis(5)).await;
        }
    });
    let work = tokio::spawn(work);
    wait_for_queue(&*b, &name, 1).await?;
    let next = promised("the next grant", lock(h, &*b, &name)?.acquire()).await??;
    let granted = clock.now();
    let ended = timeout(PATIENCE, work).await;
    let ended = ended.map_err(|_| "the work goes on after the next grant")??;
    keeps!(matches!(ended, Err(Error::Lost { .. })), "the work ended as {ended:?}");
    let last = *last_poll.borrow();
    ensure!(last <= granted, "polled {:?} after the next grant", last.since(granted));
    next.release().await?;
    Ok(())
}

async fn told_before_the_next_grant(
    h: &dyn Harness,
    [a, b]: [&dyn Client; 2],
    cut: impl Future<Output = Done>,
) -> Result<(LossReason, LockGuard), Failure> {
    let name = fresh("loss");
    let guard = acquire(h, a, &name).await?;
    let clock = a.locks().driver().clock();
    let lost = guard.lost();
    let told = tokio::spawn(async move {
        let reason = lost.await;
        (reason, clock.now())
    });
    let waiter = tokio::spawn(lock(h, b, &name)?.ttl(long(h, b)).acquire());
    wait_for_queue(b, &name, 2).await?;
    cut.await?;
    // A client that hears nothing may still reach the store, and live there for more than a TTL.
    let next = within(PATIENCE + h.ttl(), "the next grant", waiter).await???;
    let granted: Instant = clock.now();
    let told = timeout(PATIENCE, told).await;
    let told = told.map_err(|_| "not told, and the lock was granted to another holder")?;
    let (reason, told) = told?;
    ensure!(
        told <= granted,
        "told {:?} after the lock was granted to another holder",
        told.since(granted)
    );
    Ok((reason, next))
}

/// The lock's keys are deleted unknown to the holder: it learns of it by a message of the store, or
/// at the latest by its deadline, and its release returns the loss.
async fn told_when_deleted(h: &dyn Harness) -> Done {
    let (name, a) = (fresh("deleted"), h.client().await?);
    let guard = acquire(h, &*a, &name).await?;
    h.delete(&name).await?;
    let limit = h.ttl();
    if timeout(limit, guard.lost()).await.is_err() {
        return Err(format!("not told {limit:?} after the lock's keys were deleted").into());
    }
    let released = guard.release().await;
    ensure!(matches!(released, Err(Error::Lost { .. })), "a release after the loss: {released:?}");
    Ok(())
}

/// Every call gets the same reason, also later; the loss has one reason.
async fn told_once(h: &dyn Harness) -> Done {
    let (name, a) = (fresh("once"), h.client().await?);
    let guard = lock(h, &*a, &name)?.fixed_term();
    let guard = soon("acquire", guard.acquire()).await??;
    let first = promised("the first to ask", guard.lost()).await?;
    let again = promised("the next to ask", guard.lost()).await?;
    ensure!(first == again, "told {first:?}, then {again:?}");
    match guard.release().await {
        Err(Error::Lost { reason, .. }) if reason == first => Ok(()),
        other => Err(Missed(format!("told {first:?}, but the release says {other:?}")).into()),
    }
}

async fn not_told_of_a_release(h: &dyn Harness) -> Done {
    let (name, a) = (fresh("release"), h.client().await?);
    let guard = acquire(h, &*a, &name).await?;
    let (released, dropped) = (guard.lost(), {
        let other = acquire(h, &*a, &fresh("drop")).await?;
        other.lost()
    });
    soon("release", guard.release()).await??;
    // Longer than any signal of the store takes, and longer than the deadline.
    let told = timeout(h.ttl() * 2, async {
        tokio::select! {
            reason = released => reason,
            reason = dropped => reason,
        }
    });
    match told.await {
        Err(_) => Ok(()),
        Ok(reason) => {
            Err(Missed(format!("a normal release was told as a loss: {reason:?}")).into())
        }
    }
}

/// A waiter is cut off until its entry has expired: it gets an error, and never the lock.
async fn a_waiter_is_told_too(h: &dyn Harness) -> Done {
    let (name, a, b) = (fresh("waiter"), h.client().await?, h.client().await?);
    needs_waiters(&*b)?;
    let guard = acquire(h, &*a, &name).await?;
    let waiter = queue_up(h, &*b, &name, 1).await?;
    b.cut().await?;
    queue_becomes(&*a, &name, 1).await?;
    b.heal().await?;
    match promised("the waiter's answer", waiter).await?? {
        Err(Error::Unavailable { .. } | Error::PlaceLost { .. }) => {}
        Err(error) => return unexpected(&error),
        Ok(_) => return Err("granted to a waiter whose entry had expired".into()),
    }
    keeps!(guard.is_valid(), "the holder lost its lock with the waiter");
    soon("release", guard.release()).await??;
    Ok(())
}

fn unexpected(error: &Error) -> Done {
    Err(Missed(format!("the waiter got {error:?}, expected Unavailable")).into())
}
