//! The calls for operators: names in use, holders and waiters, and revoking a lock. Claims of the
//! documents about `etcdctl`, `redis-cli` and `zkCli` as the only tools; consul#2106.

use super::{Done, Harness, ensure, keeps, property, scene::*};
use crate::{Entry, Kind, LockName, LossReason};

property!(names_in_use, a_revoked_holder, a_revoked_waiter);

/// Exactly the names below the prefix that have a holder or a waiter, odd ones too.
async fn names_in_use(h: &dyn Harness) -> Done {
    let (a, b) = (h.client().await?, h.client().await?);
    let tag = fresh("in-use");
    let mut names = Vec::new();
    for suffix in ["", "/x y", "/%20", "/\u{540d}"] {
        names.push(LockName::new(format!("{tag}{suffix}"))?);
    }
    names.sort();
    let mut guards = Vec::new();
    for name in &names {
        guards.push(acquire(h, &*a, name).await?);
    }
    let other = acquire(h, &*a, &fresh("other")).await?;
    let listed = soon("names", b.locks().names(&tag)).await??;
    ensure!(listed == names, "in use are {names:?}, listed as {listed:?}");
    let all = soon("names", b.locks().names("")).await??;
    ensure!(all.contains(other.name()) && all.len() == names.len() + 1, "all names are {all:?}");
    for guard in guards {
        soon("release", guard.release()).await??;
    }
    let listed = soon("names", b.locks().names(&tag)).await??;
    ensure!(listed.is_empty(), "released names are still listed: {listed:?}");
    soon("release", other.release()).await??;
    nothing_left(h).await
}

/// The victim gets the loss and its reason at once, and the next in line is served.
async fn a_revoked_holder(h: &dyn Harness) -> Done {
    let (name, a, b) = (fresh("revoked"), h.client().await?, h.client().await?);
    let guard = acquire(h, &*a, &name).await?;
    let waiter = if shows_waiters(&*b) { Some(queue_up(h, &*b, &name, 1).await?) } else { None };
    let holder = queue(&*b, &name).await?.into_iter().next();
    let Some(Entry { attempt: Some(attempt), holds: true, kind, .. }) = holder else {
        return Err(format!("the holder is shown as {holder:?}").into());
    };
    ensure!(
        kind == h.guise().kind() && kind != Kind::Shared,
        "the holder's kind is shown as {kind:?}"
    );
    ensure!(soon("revoke", b.locks().revoke(&name, attempt)).await??, "nothing was revoked");
    let reason = within(h.ttl() / 4, "the victim's loss", guard.lost()).await?;
    keeps!(reason == LossReason::EntryGone, "the reason is {reason:?}");
    ensure!(!soon("revoke", b.locks().revoke(&name, attempt)).await??, "it was revoked twice");
    let next = match waiter {
        Some(waiter) => promised("the next in line", waiter).await???,
        None => promised("the next grant", lock(h, &*b, &name)?.acquire()).await??,
    };
    soon("release", next.release()).await??;
    drop(guard);
    nothing_left(h).await
}

/// A revoked waiter gets an error, and the others keep their places.
async fn a_revoked_waiter(h: &dyn Harness) -> Done {
    let (name, a, b) = (fresh("revoked"), h.client().await?, h.client().await?);
    needs_waiters(&*a)?;
    let guard = acquire(h, &*a, &name).await?;
    let victim = queue_up(h, &*b, &name, 1).await?;
    let next = queue_up(h, &*a, &name, 2).await?;
    let waiting = queue(&*a, &name).await?.into_iter().nth(1);
    let Some(Entry { attempt: Some(attempt), holds: false, .. }) = waiting else {
        return Err(format!("the waiter is shown as {waiting:?}").into());
    };
    ensure!(soon("revoke", a.locks().revoke(&name, attempt)).await??, "nothing was revoked");
    let told = within(h.ttl() / 4, "the end of a revoked waiter", victim).await??;
    ensure!(told.is_err(), "a revoked waiter was granted the lock");
    keeps!(guard.is_valid(), "a revoked waiter cost the holder its lock");
    soon("release", guard.release()).await??;
    promised("the next in line", next).await???.release().await?;
    nothing_left(h).await
}
