//! A grant for a caller that does not poll, as in a `select!` with a slow other branch: it is kept
//! for one TTL and then passed on, and the caller learns which of both happened.

use std::{future::Future, pin::Pin, task::Poll};

use super::{Client, Done, Failure, Harness, ensure, keeps, property, scene::*};
use crate::{Error, LockGuard, LockName, LossReason, Result as Answer};

property!(collected_in_time, collected_too_late, a_free_lock, several_locks);

type Asleep = Pin<Box<dyn Future<Output = Answer<LockGuard>> + Send>>;

/// A grant that is collected within a TTL is a usual lock: held, and renewed.
async fn collected_in_time(h: &dyn Harness) -> Done {
    let (name, a, b) = (fresh("asleep"), h.client().await?, h.client().await?);
    let clock = a.locks().driver().clock();
    let began = clock.now();
    let asleep = granted_asleep(h, &*a, &*b, &name).await?;
    tokio::time::sleep(h.ttl() / 2).await;
    // A busy machine may have taken a TTL for it.
    let late = clock.now().since(began) >= h.ttl();
    let guard = match soon("the grant", asleep).await? {
        Err(error) if late => return honest(&error),
        answer => answer?,
    };
    keeps!(guard.is_valid(), "a grant was handed over that is over");
    // By then a grant that was never renewed is over.
    tokio::time::sleep(h.ttl() * 3 / 4).await;
    keeps!(guard.is_valid(), "a grant that was collected late is not renewed");
    let taken = soon("try_acquire", lock(h, &*a, &name)?.try_acquire()).await??;
    ensure!(taken.is_none(), "granted to another holder while the first one held it");
    soon("release", guard.release()).await??;
    nothing_left(h).await
}

/// A grant that is not collected goes to the next waiter, and the late caller gets no lock.
async fn collected_too_late(h: &dyn Harness) -> Done {
    let (name, a, b) = (fresh("asleep"), h.client().await?, h.client().await?);
    let asleep = granted_asleep(h, &*a, &*b, &name).await?;
    handed_on(h, &*a, &name, asleep).await
}

/// It was granted by the first request.
async fn a_free_lock(h: &dyn Harness) -> Done {
    let (name, a, b) = (fresh("asleep"), h.client().await?, h.client().await?);
    let lock = lock(h, &*b, &name)?;
    let mut asleep = None;
    // A store that answers before the first poll is over lets nobody sleep.
    for _ in 0..20 {
        let mut acquire: Asleep = Box::pin(lock.acquire());
        match poll_once(acquire.as_mut()).await {
            Poll::Pending => {
                asleep = Some(acquire);
                break;
            }
            Poll::Ready(granted) => soon("release", granted?.release()).await??,
        }
    }
    let Some(asleep) = asleep else { return Ok(()) };
    promised("the grant of a caller that is not polled", is_held(&*a, &name)).await??;
    handed_on(h, &*a, &name, asleep).await
}

/// The one that is waited for is granted, and none of them is collected.
async fn several_locks(h: &dyn Harness) -> Done {
    let (first, second) = (fresh("asleep-1"), fresh("asleep-2"));
    let (a, b) = (h.client().await?, h.client().await?);
    let guard = acquire(h, &*a, &second).await?;
    let set = b.locks().all([&first, &second])?.ttl(h.ttl());
    let mut asleep = Box::pin(set.acquire());
    let polled = poll_once(asleep.as_mut()).await;
    ensure!(polled.is_pending(), "a set was granted although {second} was held: {polled:?}");
    wait_for_queue(&*a, &second, 2).await?;
    soon("release", guard.release()).await??;
    for name in [&first, &second] {
        let next = lock(h, &*a, name)?.acquire();
        promised("a lock that nobody collects", next).await??.release().await?;
    }
    match soon("the grant", asleep).await? {
        Err(Error::Lost { .. }) => {}
        // It was not known to wait, and may have asked again only now.
        Ok(held) if !shows_waiters(&*a) => soon("release", held.release()).await??,
        late => return Err(format!("handed on, and told {late:?}").into()),
    }
    nothing_left(h).await
}

async fn handed_on(h: &dyn Harness, other: &dyn Client, name: &LockName, asleep: Asleep) -> Done {
    let next = lock(h, other, name)?.acquire();
    let next = promised("the lock that nobody collects", next).await??;
    match soon("the grant", asleep).await? {
        Err(error) => honest(&error)?,
        Ok(guard) => {
            return Err(format!("granted to another holder, and handed over: {guard:?}").into());
        }
    }
    keeps!(next.is_valid(), "the late caller cost the next holder its lock");
    soon("release", next.release()).await??;
    nothing_left(h).await
}

/// An acquire of `b` that has the lock, and was last polled while it waited for `a`.
async fn granted_asleep(
    h: &dyn Harness,
    a: &dyn Client,
    b: &dyn Client,
    name: &LockName,
) -> Result<Asleep, Failure> {
    let guard = acquire(h, a, name).await?;
    let mut asleep: Asleep = Box::pin(lock(h, b, name)?.acquire());
    if let Poll::Ready(answer) = poll_once(asleep.as_mut()).await {
        return Err(format!("an acquire of a lock that is held ended as {answer:?}").into());
    }
    wait_for_queue(a, name, 2).await?;
    soon("release", guard.release()).await??;
    promised("the grant of a waiter that is not polled", is_held(a, name)).await??;
    Ok(asleep)
}

async fn is_held(client: &dyn Client, name: &LockName) -> Done {
    let is_held =
        || async { Ok(client.locks().inspect(name).await?.iter().any(|entry| entry.holds)) };
    until(is_held).await
}

fn honest(error: &Error) -> Done {
    let told = matches!(error, Error::Lost { reason: LossReason::NotCollected, .. });
    ensure!(told, "a grant that was not collected ended as {error:?}");
    Ok(())
}
