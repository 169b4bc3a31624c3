//! Never more holders than permits, and permits come back. redisson#5290 and its family (permits
//! that are lost with their holders, or counted twice); curator's `InterProcessSemaphoreV2`, which
//! trusts that all clients name the same limit.

use std::{
    pin::pin,
    sync::{
        Arc,
        atomic::{AtomicU32, AtomicU64, Ordering},
    },
    time::Duration,
};

use tokio::{task::JoinSet, time::timeout};

use super::{Client, Done, Failure, Harness, Missed, ensure, keeps, property, scene::*};
use crate::{Error, Kind, LockGuard, LockKind, LockName, Semaphore};

property!(
    never_too_many,
    many_at_once_in_order,
    a_release_lets_in_who_fits,
    a_crashed_holder,
    another_limit_is_refused,
    tries,
);

fn semaphore(
    h: &dyn Harness,
    client: &dyn Client,
    name: &LockName,
    permits: u32,
) -> Result<Semaphore, Failure> {
    needs_kind(client, LockKind::Permits)?;
    Ok(client.locks().semaphore(name, permits)?.ttl(h.ttl()))
}

async fn take(semaphore: &Semaphore, n: u32) -> Result<LockGuard, Failure> {
    Ok(soon("acquire permits", semaphore.acquire_many(n)).await??)
}

const PERMITS: u32 = 3;

/// Workers of several clients take one, two or three of three permits.
async fn never_too_many(h: &dyn Harness) -> Done {
    let name = fresh("permits");
    let (taken, rounds) = (Arc::new(AtomicU32::new(0)), Arc::new(AtomicU64::new(0)));
    let (mut clients, mut workers) = (Vec::new(), JoinSet::new());
    for _ in 0..3 {
        let client = h.client().await?;
        for n in 1..=PERMITS {
            let semaphore = semaphore(h, &*client, &name, PERMITS)?;
            let (locks, name) = (client.locks().clone(), name.clone());
            let (taken, rounds) = (taken.clone(), rounds.clone());
            workers.spawn(async move {
                for _ in 0..10 {
                    let guard = semaphore.acquire_many(n).await?;
                    let now = taken.fetch_add(n, Ordering::SeqCst) + n;
                    // A round trip inside: one grant too many must have the time to happen.
                    locks.inspect(&name).await?;
                    taken.fetch_sub(n, Ordering::SeqCst);
                    ensure!(now <= PERMITS, "{now} of {PERMITS} permits were in use");
                    guard.release().await?;
                    rounds.fetch_add(1, Ordering::SeqCst);
                }
                Ok(())
            });
        }
        clients.push(client);
    }
    all_done("workers with permits", workers, || rounds.load(Ordering::SeqCst)).await?;
    nothing_left(h).await
}

/// A waiter for all permits is not overtaken by a waiter for one.
async fn many_at_once_in_order(h: &dyn Harness) -> Done {
    let (name, a, b) = (fresh("many"), h.client().await?, h.client().await?);
    let (here, there) = (semaphore(h, &*a, &name, 3)?, semaphore(h, &*b, &name, 3)?);
    let first = take(&here, 2).await?;
    let all = tokio::spawn(there.acquire_many(3));
    wait_for_queue(&*a, &name, 2).await?;
    let one = tokio::spawn(here.acquire());
    wait_for_queue(&*a, &name, 3).await?;
    let overtakes = soon("try", there.try_acquire()).await??.is_some();
    ensure!(!overtakes, "a try overtook somebody who waits for three permits");
    ensure!(!one.is_finished(), "one permit overtook three");
    soon("release", first.release()).await??;
    let all = promised("three permits", all).await???;
    ensure!(!one.is_finished(), "a fourth of three permits was granted");
    keeps!(all.is_valid(), "the three permits were lost");
    soon("release", all.release()).await??;
    promised("one permit", one).await???.release().await?;
    nothing_left(h).await
}

/// Two permits come back, and two waiters for one each get them; the third waits.
async fn a_release_lets_in_who_fits(h: &dyn Harness) -> Done {
    let (name, a, b) = (fresh("fits"), h.client().await?, h.client().await?);
    let (here, there) = (semaphore(h, &*a, &name, 3)?, semaphore(h, &*b, &name, 3)?);
    let (one, two) = (take(&there, 1).await?, take(&here, 2).await?);
    let mut waiters = Vec::new();
    for n in 0..3 {
        let from = if n % 2 == 0 { &here } else { &there };
        waiters.push(tokio::spawn(from.acquire()));
        wait_for_queue(&*a, &name, 3 + n).await?;
    }
    soon("release", two.release()).await??;
    let third = waiters.remove(2);
    let mut guards = Vec::new();
    for waiter in waiters {
        guards.push(promised("a permit that came back", waiter).await???);
    }
    let held = queue(&*b, &name).await?;
    let held = held.iter().filter(|entry| entry.holds).count();
    ensure!(held == 3 && !third.is_finished(), "{held} hold one of three permits each");
    soon("release", one.release()).await??;
    guards.push(promised("the last permit", third).await???);
    for guard in guards {
        soon("release", guard.release()).await??;
    }
    nothing_left(h).await
}

async fn a_crashed_holder(h: &dyn Harness) -> Done {
    let (name, a, b) = (fresh("crash"), h.client().await?, h.client().await?);
    let dead = take(&semaphore(h, &*a, &name, 2)?, 1).await?;
    let there = semaphore(h, &*b, &name, 2)?;
    let alive = take(&there, 1).await?;
    let waiter = tokio::spawn(there.acquire());
    wait_for_queue(&*b, &name, 3).await?;
    a.crash().await?;
    let guard = within(expiry_limit(h, &*b), "a dead holder's permit", waiter);
    guard.await???.release().await?;
    keeps!(alive.is_valid(), "one holder's crash cost another one its permit");
    soon("release", alive.release()).await??;
    drop(dead);
    Ok(())
}

/// The error of a try names both limits, and it leaves nothing. A waiter waits for the others' end,
/// also behind others that wait.
async fn another_limit_is_refused(h: &dyn Harness) -> Done {
    let (name, a, b) = (fresh("limit"), h.client().await?, h.client().await?);
    let guard = take(&semaphore(h, &*a, &name, 3)?, 1).await?;
    let other = semaphore(h, &*b, &name, 5)?;
    match soon("try", other.try_acquire()).await? {
        Err(error @ Error::InvalidOption { .. }) => {
            let said = error.to_string();
            ensure!(said.contains('5') && said.contains('3'), "{said:?} does not show both");
        }
        other => return Err(Missed(format!("another limit was answered with {other:?}")).into()),
    }
    let mut waiter = pin!(other.acquire_many(5));
    waits_on(&mut waiter).await?;
    queue_becomes(&*a, &name, 1).await?;
    soon("release", guard.release()).await??;
    soon("a grant after the last of another limit", waiter).await??.release().await?;
    let guard = soon("acquire", a.locks().lock(&name)?.acquire()).await??;
    let first = tokio::spawn(semaphore(h, &*a, &name, 3)?.acquire());
    wait_for_queue(&*a, &name, 2).await?;
    let mut waiter = pin!(other.acquire_many(5));
    waits_on(&mut waiter).await?;
    queue_becomes(&*a, &name, 2).await?;
    soon("release", guard.release()).await??;
    let first = promised("the waiter's turn", first).await???;
    soon("release", first.release()).await??;
    soon("a grant after the last waiter of another limit", waiter).await??.release().await?;
    nothing_left(h).await
}

/// Longer than an answer takes.
async fn waits_on(waiter: impl Future<Output = Result<LockGuard, Error>>) -> Done {
    match timeout(Duration::from_secs(1), waiter).await {
        Ok(early) => Err(Missed(format!("a wait beside another limit ended as {early:?}")).into()),
        Err(_) => Ok(()),
    }
}

async fn tries(h: &dyn Harness) -> Done {
    let (name, a, b) = (fresh("try"), h.client().await?, h.client().await?);
    let (here, there) = (semaphore(h, &*a, &name, 2)?, semaphore(h, &*b, &name, 2)?);
    let first = take(&here, 1).await?;
    let second = soon("try", there.try_acquire()).await??.ok_or("a free permit was refused")?;
    ensure!(soon("try", here.try_acquire()).await??.is_none(), "a third of two permits");
    ensure!(soon("try", here.try_acquire_many(2)).await??.is_none(), "four of two permits");
    let beside = is_free(h, &*b, &name, Kind::Exclusive).await?;
    ensure!(!beside, "an exclusive lock was granted beside permits of the same name");
    if has_kind(&*b, LockKind::Shared) {
        let beside = is_free(h, &*b, &name, Kind::Shared).await?;
        ensure!(!beside, "a reader was granted beside permits of the same name");
    }
    queue_becomes(&*a, &name, 2).await?;
    soon("release", first.release()).await??;
    ensure!(soon("try", here.try_acquire_many(2)).await??.is_none(), "three of two permits");
    soon("release", second.release()).await??;
    nothing_left(h).await
}
