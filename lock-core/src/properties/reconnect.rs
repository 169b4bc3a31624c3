//! After a restart of the server that keeps its data, no client has lost a lock or a place.
//! kazoo#282 (acquire hangs after recovery), redisson#2515 (renewal stops after a connection
//! error).

use std::time::Duration;

use tokio::task::JoinHandle;

use super::{Client, Done, Failure, Harness, Missed, ensure, keeps, needs, property, scene::*};
use crate::{Error, Guarantees, LockGuard, Locks};

property!(
    while_holding,
    while_waiting,
    a_short_outage,
    an_outage_is_no_busy_lock,
    a_wait_through_an_outage,
);

async fn while_holding(h: &dyn Harness) -> Done {
    let (a, b) = (h.client().await?, h.client().await?);
    needs_data(a.locks())?;
    let mut ttl = outlasting(h, &*a);
    loop {
        let wanted = lock(h, &*a, &fresh("restart-held"))?.ttl(ttl);
        let guard = once_back("acquire", || wanted.acquire()).await?;
        match restart(h, a.locks(), ttl).await? {
            None => return outlives_a_restart(h, &*b, guard).await,
            Some(longer) => ttl = longer,
        }
        // It may have ended meanwhile.
        let _ = soon("release", guard.release()).await?;
    }
}

async fn outlives_a_restart(h: &dyn Harness, other: &dyn Client, guard: LockGuard) -> Done {
    let name = guard.name().clone();
    let wanted = lock(h, other, &name)?;
    let taken = once_back("try_acquire", || wanted.try_acquire()).await?;
    ensure!(taken.is_none(), "the lock was granted to another holder after a restart");
    for what in ["a renewal after the restart", "renewals that go on"] {
        promised(what, renewed(&guard)).await?;
        keeps!(guard.is_valid(), "the lock was lost: it was not renewed after the restart");
    }
    soon("release", guard.release()).await??;
    Ok(())
}

/// Waits for the next renewal, or the loss.
async fn renewed(guard: &LockGuard) {
    let mut before = guard.remaining();
    while guard.is_valid() {
        tokio::time::sleep(Duration::from_millis(5)).await;
        let now = guard.remaining();
        if std::mem::replace(&mut before, now) < now {
            return;
        }
    }
}

async fn while_waiting(h: &dyn Harness) -> Done {
    let (a, b) = (h.client().await?, h.client().await?);
    needs_data(a.locks())?;
    let mut ttl = outlasting(h, &*a);
    loop {
        let name = fresh("restart-waiting");
        let wanted = lock(h, &*a, &name)?.ttl(ttl);
        let mut guard = once_back("acquire", || wanted.acquire()).await?;
        // Without an order, nobody knows whose turn it is.
        let count = if shows_waiters(&*b) { 2 } else { 1 };
        let mut waiters = Vec::new();
        for (position, client) in [&b, &a].into_iter().take(count).enumerate() {
            waiters.push(tokio::spawn(lock(h, &**client, &name)?.ttl(ttl).acquire()));
            wait_for_queue(&*b, &name, 2 + position).await?;
        }
        if let Some(longer) = restart(h, a.locks(), ttl).await? {
            waiters.iter().for_each(JoinHandle::abort);
            // It may have ended meanwhile.
            let _ = soon("release", guard.release()).await?;
            ttl = longer;
            continue;
        }
        for waiter in waiters {
            let token = guard.token();
            soon("release", guard.release()).await??;
            guard = promised("the waiter's turn after the restart", waiter).await???;
            ensure!(guard.token() > token, "token {} after {token}", guard.token());
        }
        soon("release", guard.release()).await??;
        return nothing_left(h).await;
    }
}

/// A client is out of reach while a renewal is due: it keeps its lock and its place.
async fn a_short_outage(h: &dyn Harness) -> Done {
    let (name, a, b) = (fresh("outage"), h.client().await?, h.client().await?);
    // What is left after the outage is enough for a busy machine.
    let ttl = outlasting(h, &*a);
    let here = lock(h, &*a, &name)?.ttl(ttl);
    let guard = soon("acquire", here.acquire()).await??;
    let waiter = tokio::spawn(here.acquire());
    wait_for_queue(&*b, &name, 2).await?;
    a.cut().await?;
    tokio::time::sleep(ttl * 2 / 5).await;
    a.heal().await?;
    promised("a renewal after the outage", renewed(&guard)).await?;
    keeps!(guard.is_valid(), "lost in an outage that was shorter than the TTL");
    soon("release", guard.release()).await??;
    promised("the waiter's turn after the outage", waiter).await???.release().await?;
    nothing_left(h).await
}

/// A client is out of reach for long: who asks and who waits gets an error that says so. It works
/// again when the store is back.
async fn an_outage_is_no_busy_lock(h: &dyn Harness) -> Done {
    let (name, a, b) = (fresh("outage"), h.client().await?, h.client().await?);
    let ttl = outlasting(h, &*a);
    let guard = soon("acquire", lock(h, &*a, &name)?.ttl(ttl).acquire()).await??;
    let free = lock(h, &*b, &fresh("free"))?;
    soon("acquire", free.acquire()).await??.release().await?;
    let waiter = match shows_waiters(&*b) {
        true => Some(queue_up(h, &*b, &name, 1).await?),
        false => None,
    };
    b.cut().await?;
    let both = async { tokio::join!(free.acquire(), free.try_acquire()) };
    let (acquired, tried) = promised("the end of a request without an answer", both).await?;
    let waited = match waiter {
        Some(waiter) => promised("the end of a wait without an answer", waiter).await??.err(),
        None => None,
    };
    for error in [acquired.err(), tried.err(), waited].into_iter().enumerate() {
        match error {
            (_, Some(Error::Unavailable { .. })) => {}
            (2, None) if !shows_waiters(&*b) => {}
            (_, other) => return Err(Missed(format!("out of reach, and told {other:?}")).into()),
        }
    }
    b.heal().await?;
    promised("a lock after the outage", free.acquire()).await??.release().await?;
    queue_becomes(&*a, &name, 1).await?;
    keeps!(guard.is_valid(), "another client's outage cost the holder its lock");
    soon("release", guard.release()).await??;
    nothing_left(h).await
}

/// A client is out of reach until its place has expired: its wait goes on at the end of the line.
async fn a_wait_through_an_outage(h: &dyn Harness) -> Done {
    let (name, a, b) = (fresh("through"), h.client().await?, h.client().await?);
    let held = lock(h, &*a, &name)?.ttl(outlasting(h, &*a));
    let guard = soon("acquire", held.acquire()).await??;
    let mut waiter = tokio::spawn(lock(h, &*b, &name)?.wait_through_outages().acquire());
    wait_for_queue(&*a, &name, 2).await?;
    b.cut().await?;
    tokio::time::sleep(h.ttl()).await;
    queue_becomes(&*a, &name, 1).await?;
    b.heal().await?;
    tokio::select! {
        ended = &mut waiter => return Err(Missed(format!("the wait ended: {ended:?}")).into()),
        again = queue_becomes(&*a, &name, 2) => again?,
    }
    keeps!(guard.is_valid(), "another client's outage cost the holder its lock");
    keeps!(!waiter.is_finished(), "two have the lock");
    soon("release", guard.release()).await??;
    promised("the waiter's turn after the outage", waiter).await???.release().await?;
    nothing_left(h).await
}

/// Calls until the store answers: the first calls after a restart may find a dead connection.
async fn once_back<T, F: Future<Output = crate::Result<T>>>(
    what: &str,
    call: impl Fn() -> F,
) -> Result<T, Failure> {
    let answered = async {
        loop {
            match call().await {
                Err(error) if error.is_transient() => tokio::task::yield_now().await,
                answer => return answer,
            }
        }
    };
    Ok(soon(what, answered).await??)
}

/// Restarts the server, and waits for an answer to a client. If that takes more than a quarter of the
/// TTL, it proves nothing, since some stores end a holder at half of it: returns a longer TTL to try
/// again with, if the store has one.
async fn restart(
    h: &dyn Harness,
    locks: &Locks,
    ttl: Duration,
) -> Result<Option<Duration>, Failure> {
    let clock = locks.driver().clock();
    let began = clock.now();
    h.restart().await?;
    once_back("ping", || locks.ping()).await?;
    let longer = (ttl * 2).min(*locks.guarantees().ttl.end());
    Ok((clock.now().since(began) >= ttl / 4 && longer > ttl).then_some(longer))
}

fn needs_data(locks: &Locks) -> Done {
    let Guarantees { store, survives, .. } = locks.guarantees();
    needs!(survives.restart, "{store} forgets its locks in a restart as it is configured");
    Ok(())
}
