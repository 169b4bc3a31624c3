//! `try_acquire` returns at once, leaves nothing behind, overtakes no waiter. Claim C14 of the
//! documents; jplana/python-etcd#228 (a failed attempt leaves a key each time), curator's `tryLock`
//! that waits.

use std::time::Duration;

use super::{Done, Harness, ensure, keeps, property, scene::*};

property!(takes_a_free_lock, answers_at_once, disturbs_no_waiter);

async fn takes_a_free_lock(h: &dyn Harness) -> Done {
    let (name, a) = (fresh("try-free"), h.client().await?);
    let taken = soon("try_acquire", lock(h, &*a, &name)?.try_acquire()).await??;
    match taken {
        Some(guard) => soon("release", guard.release()).await??,
        None => return Err("a free lock was called busy".into()),
    }
    nothing_left(h).await
}

async fn answers_at_once(h: &dyn Harness) -> Done {
    let (name, a, b) = (fresh("try-held"), h.client().await?, h.client().await?);
    let guard = acquire(h, &*a, &name).await?;
    let at_once = Duration::from_millis(1500);
    for _ in 0..5 {
        let taken = lock(h, &*b, &name)?.try_acquire();
        let taken = within(at_once, "the answer to a try", taken).await??;
        ensure!(taken.is_none(), "took a lock that another client holds");
    }
    queue_becomes(&*a, &name, 1).await?;
    soon("release", guard.release()).await??;
    nothing_left(h).await
}

/// While one client waits, others try all the time: none gets in, and the waiter is next.
async fn disturbs_no_waiter(h: &dyn Harness) -> Done {
    let (name, a, b, c) =
        (fresh("try-queue"), h.client().await?, h.client().await?, h.client().await?);
    let guard = acquire(h, &*a, &name).await?;
    let waiter = queue_up(h, &*b, &name, 1).await?;
    for _ in 0..5 {
        let taken = soon("try_acquire", lock(h, &*c, &name)?.try_acquire()).await??;
        ensure!(taken.is_none(), "overtook a waiter");
    }
    soon("release", guard.release()).await??;
    let guard = promised("the waiter's turn", waiter).await???;
    keeps!(guard.is_valid(), "the waiter got a lock that is lost");
    soon("release", guard.release()).await??;
    Ok(())
}
