//! A request that took effect and whose answer is lost is sent again, and done once. CURATOR-45 (a
//! node is created, its creator learns of an error, and nobody leads), CURATOR-678 (a release fails
//! with its connection, and the lock stays taken).

use std::time::Duration;

use tokio::time::timeout;

use super::{Client, Done, Failure, Harness, as_mutex::Mutex, ensure, keeps, property, scene::*};
use crate::{Entry, Error, LockGuard, LockName};

property!(of_an_acquire, of_a_waiter, of_a_release, of_a_caller_that_left);

/// A lock that its client has used: a server that must load a script first, or open a session, does
/// nothing without an answer.
async fn used(h: &dyn Harness, client: &dyn Client, name: &LockName) -> Result<Mutex, Failure> {
    let lock = lock(h, client, name)?.ttl(long(h, client));
    soon("acquire", lock.acquire()).await??.release().await?;
    let tried = soon("try_acquire", lock.try_acquire()).await??;
    tried.ok_or("a free lock was called busy")?.release().await?;
    Ok(lock)
}

/// A lock that its client keeps, which shows that the client's session does not end.
async fn another(h: &dyn Harness, client: &dyn Client) -> Result<LockGuard, Failure> {
    let other = lock(h, client, &fresh("other"))?.ttl(long(h, client));
    Ok(soon("acquire", other.acquire()).await??)
}

async fn lasts(other: LockGuard) -> Done {
    keeps!(other.is_valid(), "a lost answer cost the client another lock");
    Ok(soon("release", other.release()).await??)
}

/// The guard's is the only entry. A queue also keeps the one that was there before the answer was
/// lost.
async fn once(client: &dyn Client, guard: &LockGuard, before: &[Entry]) -> Done {
    let now = queue(client, guard.name()).await?;
    ensure!(now.len() == 1 && now[0].holds, "one attempt is shown as {now:?}");
    let token = now[0].holder.token;
    ensure!(token.is_none_or(|token| token == guard.token()), "{} as {now:?}", guard.token());
    let kept = before.first().is_none_or(|before| before.holder.token == token);
    ensure!(kept || !shows_waiters(client), "{before:?} became {now:?}");
    keeps!(guard.is_valid(), "granted, and not held");
    Ok(())
}

/// Also of a try: it does not find its own lock busy.
async fn of_an_acquire(h: &dyn Harness) -> Done {
    let (name, a, b) = (fresh("answer"), h.client().await?, h.client().await?);
    let lock = used(h, &*a, &name).await?;
    let acquire = lock.clone();
    let acquire = async move { acquire.acquire().await.map(Some) };
    ensure!(is_granted_once(h, [&*a, &*b], &name, acquire).await?, "an acquire ended in doubt");
    for round in 1.. {
        let lock = lock.clone();
        let work = async move { lock.try_acquire().await };
        if is_granted_once(h, [&*a, &*b], &name, work).await? || !shows_waiters(&*b) {
            break;
        }
        // A busy machine may leave no time for the second answer.
        ensure!(round < 5, "a try ended in doubt each time");
    }
    Ok(())
}

/// Whether a grant whose answer was lost came with the second answer. If it did not, the caller was
/// told, and nothing is left.
async fn is_granted_once(
    h: &dyn Harness,
    [a, b]: [&dyn Client; 2],
    name: &LockName,
    work: impl Future<Output = crate::Result<Option<LockGuard>>> + Send + 'static,
) -> Result<bool, Failure> {
    let asked = unanswered(a, work, wait_for_queue(b, name, 1)).await?;
    let before = queue(b, name).await?;
    a.lose_replies().await?;
    let granted = promised("the grant whose answer was lost", asked).await??;
    let is_granted = !matches!(granted, Err(Error::Unavailable { .. }));
    if is_granted {
        let guard = granted?.ok_or("a try that was sent again found its own lock busy")?;
        once(b, &guard, &before).await?;
        soon("release", guard.release()).await??;
    }
    nothing_left(h).await?;
    Ok(is_granted)
}

/// It keeps its place before those who came later.
async fn of_a_waiter(h: &dyn Harness) -> Done {
    let (name, a, b) = (fresh("answer"), h.client().await?, h.client().await?);
    needs_waiters(&*b)?;
    let (here, there) = (used(h, &*a, &name).await?, used(h, &*b, &name).await?);
    let guard = soon("acquire", there.acquire()).await??;
    let first = unanswered(&*a, here.acquire(), wait_for_queue(&*b, &name, 2)).await?;
    // A set asks first whether its names are free, and waits after the answer.
    let waits = queue(&*b, &name).await?.len() == 2;
    if !waits {
        a.lose_replies().await?;
        wait_for_queue(&*b, &name, 2).await?;
    }
    let second = tokio::spawn(there.acquire());
    wait_for_queue(&*b, &name, 3).await?;
    if waits {
        a.lose_replies().await?;
    }
    soon("release", guard.release()).await??;
    let first = promised("the turn of the first waiter", first).await???;
    queue_becomes(&*b, &name, 2).await?;
    ensure!(!second.is_finished(), "two hold the lock");
    soon("release", first.release()).await??;
    promised("the turn of the second waiter", second).await???.release().await?;
    nothing_left(h).await
}

/// Another client holds the lock when the release is sent again.
async fn of_a_release(h: &dyn Harness) -> Done {
    let (name, a, b) = (fresh("answer"), h.client().await?, h.client().await?);
    let other = another(h, &*a).await?;
    let guard = soon("acquire", used(h, &*a, &name).await?.acquire()).await??;
    let release = unanswered(&*a, guard.release(), wait_for_queue(&*b, &name, 0)).await?;
    let next = lock(h, &*b, &name)?.ttl(long(h, &*b)).acquire();
    let mut next = Box::pin(promised("the next grant", next));
    // A release that found no idle connection has not reached the store: a login gets no answer.
    let granted = timeout(Duration::from_secs(5), &mut next).await;
    a.lose_replies().await?;
    let next = match granted {
        Ok(granted) => granted,
        Err(_) => next.await,
    }??;
    promised("the release whose answer was lost", release).await???;
    let busy = soon("try_acquire", lock(h, &*a, &name)?.try_acquire()).await??;
    ensure!(busy.is_none(), "a release that was sent again freed another's lock");
    once(&*b, &next, &[]).await?;
    soon("release", next.release()).await??;
    lasts(other).await?;
    nothing_left(h).await
}

/// Whether the lock was free or held: neither a lock nor a place stays, long before an expiry.
async fn of_a_caller_that_left(h: &dyn Harness) -> Done {
    let (name, a, b) = (fresh("answer"), h.client().await?, h.client().await?);
    let other = another(h, &*a).await?;
    let lock = used(h, &*a, &name).await?;
    for held in [false, true] {
        let holder = match held {
            true => Some(soon("acquire", used(h, &*b, &name).await?.acquire()).await??),
            false => None,
        };
        let entries = 1 + usize::from(held);
        let asked = unanswered(&*a, lock.acquire(), wait_for_queue(&*b, &name, entries)).await?;
        asked.abort();
        a.lose_replies().await?;
        queue_becomes(&*b, &name, usize::from(held)).await?;
        if let Some(holder) = holder {
            keeps!(holder.is_valid(), "one that left cost the holder its lock");
            soon("release", holder.release()).await??;
        }
        queue_becomes(&*b, &name, 0).await?;
    }
    promised("acquire after the ones that left", lock.acquire()).await??.release().await?;
    lasts(other).await?;
    nothing_left(h).await
}
