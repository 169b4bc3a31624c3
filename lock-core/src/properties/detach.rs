//! A detached lock lives for one more TTL, independent of the client that detached it. One other
//! client adopts it, with the same token, and two clients never hold it. etcd's `WithLease` and
//! `ResumeElection`, claim C37 of the documents.

use tokio::time::timeout;

use super::{Client, Done, Failure, Harness, Missed, ensure, keeps, needs, property, scene::*};
use crate::{Error, Guarantees, LockGuard, LockName, LossReason, Ticket};

property!(
    taken_up_by_another,
    taken_up_once,
    handed_on_and_revoked,
    free_if_nobody_takes_it_up,
    outlives_who_left_it,
    a_lost_answer_costs_nothing,
);

fn needs_detach(client: &dyn Client) -> Done {
    let Guarantees { store, detach, .. } = client.locks().guarantees();
    needs!(*detach, "{store} cannot leave a lock to another process");
    Ok(())
}

async fn hold(h: &dyn Harness, client: &dyn Client, name: &LockName) -> Result<LockGuard, Failure> {
    let lock = client.locks().lock(name)?.ttl(h.ttl());
    Ok(promised("acquire", lock.acquire()).await??)
}

/// Detaches a lock. Another process would read the ticket.
async fn leave(guard: LockGuard) -> Result<Ticket, Failure> {
    let held = guard.held();
    let ticket = soon("detach", guard.detach()).await??;
    keeps!(!held.is_valid(), "valid after it was left to others");
    Ok(ticket.to_string().parse()?)
}

async fn adopt(client: &dyn Client, ticket: &Ticket) -> Result<LockGuard, Failure> {
    Ok(soon("adopt", client.locks().adopt(ticket)).await??)
}

fn refused(answer: &crate::Result<LockGuard>, reasons: &[LossReason]) -> bool {
    matches!(answer, Err(Error::Lost { reason, .. }) if reasons.contains(reason))
}

/// No other client is granted in between. Then it is renewed as before, and finally given back.
async fn taken_up_by_another(h: &dyn Harness) -> Done {
    let (name, a, b) = (fresh("detach"), h.client().await?, h.client().await?);
    needs_detach(&*a)?;
    let guard = hold(h, &*a, &name).await?;
    let token = guard.token();
    let waiter = tokio::spawn(a.locks().lock(&name)?.ttl(h.ttl()).acquire());
    wait_for_queue(&*b, &name, 2).await?;
    let ticket = leave(guard).await?;
    let guard = adopt(&*b, &ticket).await?;
    ensure!(!waiter.is_finished(), "granted while the lock waited to be taken up");
    ensure!(guard.token() == token, "token {} became {}", token, guard.token());
    keeps!(guard.is_valid(), "not valid after it was taken up");
    if let Ok(reason) = timeout(h.ttl() * 3 / 2, guard.lost()).await {
        return Err(Missed(format!("lost after it was taken up: {reason}")).into());
    }
    ensure!(!waiter.is_finished(), "granted beside the client that took it up");
    soon("release", guard.release()).await??;
    let next = promised("the next grant", waiter).await???;
    ensure!(next.token() > token, "token {} after {token}", next.token());
    soon("release", next.release()).await??;
    nothing_left(h).await
}

/// Of two at the same time one gets it, and later no other client gets it.
async fn taken_up_once(h: &dyn Harness) -> Done {
    let (name, a, b) = (fresh("once"), h.client().await?, h.client().await?);
    needs_detach(&*a)?;
    let ticket = leave(hold(h, &*a, &name).await?).await?;
    let both = async { tokio::join!(a.locks().adopt(&ticket), b.locks().adopt(&ticket)) };
    let (first, second) = soon("adopt", both).await?;
    let (guard, other) = match (first, second) {
        (Ok(guard), other) | (other, Ok(guard)) => (guard, other),
        (Err(first), Err(second)) => {
            return Err(Missed(format!("nobody got it: {first}; {second}")).into());
        }
    };
    ensure!(refused(&other, &[LossReason::Adopted]), "the other one was told {other:?}");
    let again = soon("adopt", b.locks().adopt(&ticket)).await?;
    ensure!(refused(&again, &[LossReason::Adopted]), "a used ticket was answered by {again:?}");
    keeps!(guard.is_valid(), "lost by another's vain try");
    soon("release", guard.release()).await??;
    let after = soon("adopt", a.locks().adopt(&ticket)).await?;
    ensure!(refused(&after, &[LossReason::TicketOver]), "after the release: {after:?}");
    nothing_left(h).await
}

/// It goes from hand to hand with its place and its token, past a waiter of a client that left it.
/// The last one learns that it is revoked.
async fn handed_on_and_revoked(h: &dyn Harness) -> Done {
    let (name, a, b) = (fresh("hands"), h.client().await?, h.client().await?);
    needs_detach(&*a)?;
    let lock = a.locks().lock(&name)?.ttl(outlasting(h, &*a));
    let mut guard = soon("acquire", lock.acquire()).await??;
    let token = guard.token();
    let mut waiter = None;
    for client in [&b, &a, &b] {
        let ticket = leave(guard).await?;
        let busy = soon("try", lock.try_acquire()).await??;
        ensure!(busy.is_none(), "granted to the client that left it");
        if waiter.is_none() {
            waiter = Some(tokio::spawn(lock.acquire()));
            wait_for_queue(&*b, &name, 2).await?;
        }
        guard = adopt(&**client, &ticket).await?;
        ensure!(guard.token() == token, "token {token} became {}", guard.token());
    }
    let waiter = waiter.ok_or("nobody waits")?;
    ensure!(!waiter.is_finished(), "granted while the lock went from hand to hand");
    revoke_first(&*a, &name).await?;
    let told = promised("the loss", guard.lost()).await?;
    keeps!(told == LossReason::EntryGone, "the reason is {told:?}");
    let next = promised("the next grant", waiter).await???;
    ensure!(next.token() > token, "token {} after {token}", next.token());
    let ticket = leave(next).await?;
    revoke_first(&*b, &name).await?;
    let late = soon("adopt", a.locks().adopt(&ticket)).await?;
    ensure!(refused(&late, &[LossReason::TicketOver]), "of a revoked lock: {late:?}");
    nothing_left(h).await
}

/// The next in line gets it after the TTL, and the ticket is useless from then on.
async fn free_if_nobody_takes_it_up(h: &dyn Harness) -> Done {
    let (name, a, b) = (fresh("over"), h.client().await?, h.client().await?);
    needs_detach(&*a)?;
    let guard = hold(h, &*a, &name).await?;
    let token = guard.token();
    let ticket = leave(guard).await?;
    let next = hold(h, &*b, &name).await?;
    ensure!(next.token() > token, "token {} after {token}", next.token());
    let late = soon("adopt", a.locks().adopt(&ticket)).await?;
    ensure!(refused(&late, &[LossReason::TicketOver]), "after its TTL: {late:?}");
    keeps!(next.is_valid(), "a late ticket cost the next holder its lock");
    soon("release", next.release()).await??;
    let late = soon("adopt", a.locks().adopt(&ticket)).await?;
    ensure!(refused(&late, &[LossReason::TicketOver]), "of a free lock: {late:?}");
    nothing_left(h).await
}

/// The end of a process or of its connection does not end a lock that it has detached.
async fn outlives_who_left_it(h: &dyn Harness) -> Done {
    let (a, b, c) = (h.client().await?, h.client().await?, h.client().await?);
    needs_detach(&*a)?;
    let (closed, crashed) = (fresh("closed"), fresh("crashed"));
    let of_closed = leave(hold(h, &*a, &closed).await?).await?;
    let of_crashed = leave(hold(h, &*b, &crashed).await?).await?;
    soon("close", a.locks().close()).await??;
    b.crash().await?;
    for ticket in [of_closed, of_crashed] {
        owner(&*c, ticket.name()).await?;
        let guard = adopt(&*c, &ticket).await?;
        ensure!(guard.token() == ticket.token(), "another token");
        soon("release", guard.release()).await??;
    }
    Ok(())
}

/// Requests take effect and their answers do not arrive: both are sent again, and done once.
async fn a_lost_answer_costs_nothing(h: &dyn Harness) -> Done {
    let (name, a, b) = (fresh("answer"), h.client().await?, h.client().await?);
    let c = h.client().await?;
    needs_detach(&*a)?;
    // Long enough for a reconnect.
    let long = |name: &LockName| Ok::<_, Failure>(a.locks().lock(name)?.ttl(h.ttl() * 10));
    // Once before: a server that must load a script first, or open a session, would not act without
    // an answer.
    let before = promised("acquire", long(&fresh("before"))?.acquire()).await??;
    let taught = adopt(&*b, &leave(before).await?).await?;
    soon("release", taught.release()).await??;
    let guard = promised("acquire", long(&name)?.acquire()).await??;
    let token = guard.token();
    let first = owner(&*c, &name).await?;
    a.cut_replies().await?;
    let detach = tokio::spawn(guard.detach());
    // A store that needs several requests does not get to the decisive one.
    let left = timeout(h.ttl(), next_owner(&*c, &name, first)).await;
    a.heal().await?;
    let ticket = promised("the ticket", detach).await???;
    left.unwrap_or(Ok(()))?;
    let second = owner(&*c, &name).await?;
    ensure!(second != first, "left, and still its holder's");
    b.cut_replies().await?;
    let adoption = tokio::spawn(b.locks().adopt(&ticket));
    next_owner(&*c, &name, second).await?;
    b.heal().await?;
    let guard = promised("the adoption", adoption).await???;
    ensure!(guard.is_valid() && guard.token() == token, "adopted as {guard:?}");
    soon("release", guard.release()).await??;
    nothing_left(h).await
}

/// The attempt that owns the lock, as the store shows it.
async fn owner(client: &dyn Client, name: &LockName) -> Result<Option<uuid::Uuid>, Failure> {
    let queue = queue(client, name).await?;
    let holder = queue.into_iter().next().ok_or_else(|| Missed("nobody holds it".to_owned()))?;
    Ok(holder.attempt)
}

async fn next_owner(client: &dyn Client, name: &LockName, before: Option<uuid::Uuid>) -> Done {
    let changed = || async { Ok(owner(client, name).await? != before) };
    promised("another owner", until(changed)).await?
}
