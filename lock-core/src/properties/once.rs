//! Work is marked as done for a period by a living holder alone, and the mark outlives its process.
//! What is asked of cron jobs on several hosts: ShedLock's `lockAtLeastFor`.

use std::{pin::pin, task::Poll, time::Duration};

use super::{Client, Done, Failure, Harness, ensure, keeps, needs, property, scene::*};
use crate::{Error, FencingToken, Guarantees, LockGuard, LockName, Mark, Once};

property!(
    a_mark_is_seen,
    a_mark_is_no_entry,
    none_after_a_failure,
    none_after_a_loss,
    none_after_a_loss_that_its_holder_does_not_know,
    counts_from_the_grant,
    a_lost_answer_is_asked_for_again,
    a_clear_whose_answer_is_lost_says_that_there_was_a_mark,
    an_ended_mark_goes_with_the_next,
);

const PERIOD: Duration = Duration::from_secs(3600);

fn needs_marks(client: &dyn Client) -> Done {
    let Guarantees { store, marks, .. } = client.locks().guarantees();
    needs!(marks.is_some(), "{store} keeps no marks of work in this mode");
    Ok(())
}

async fn hold(h: &dyn Harness, client: &dyn Client, name: &LockName) -> Result<LockGuard, Failure> {
    let lock = client.locks().lock(name)?.ttl(long(h, client));
    Ok(promised("acquire", lock.acquire()).await??)
}

/// Runs work once per period that comes to this.
async fn run(
    h: &dyn Harness,
    client: &dyn Client,
    name: &LockName,
    outcome: Result<(), &'static str>,
) -> Result<Once<()>, Failure> {
    let once = client.locks().lock(name)?.ttl(h.ttl()).once_per(PERIOD);
    let work = move |_| async move { outcome.map_err(Failure::from) };
    promised("a run", once.run(work)).await?
}

/// Does work once per period that is not done yet.
async fn done(h: &dyn Harness, client: &dyn Client, name: &LockName) -> Done {
    let done = run(h, client, name, Ok(())).await?;
    ensure!(matches!(done, Once::Done(())), "the run came to {done:?}");
    Ok(())
}

async fn mark(client: &dyn Client, name: &LockName) -> Result<Option<Mark>, Failure> {
    Ok(soon("mark", client.locks().mark(name)).await??)
}

async fn has_mark(client: &dyn Client, name: &LockName) -> Result<bool, Failure> {
    Ok(mark(client, name).await?.is_some())
}

async fn clear(client: &dyn Client, name: &LockName) -> Result<bool, Failure> {
    Ok(soon("clear the mark", client.locks().clear_mark(name)).await??)
}

/// By every client, which then does nothing, until it is cleared.
async fn a_mark_is_seen(h: &dyn Harness) -> Done {
    let (name, a, b) = (fresh("once"), h.client().await?, h.client().await?);
    needs_marks(&*a)?;
    ensure!(!has_mark(&*b, &name).await?, "a fresh name has a mark");
    done(h, &*a, &name).await?;
    for client in [&b, &a] {
        let again = run(h, &**client, &name, Err("done twice")).await?;
        let Once::AlreadyDone(mark) = again else {
            return Err(format!("the next run came to {again:?}").into());
        };
        let whole = !mark.host.is_empty() && mark.token > FencingToken::new(0);
        ensure!(whole && mark.ends_at > mark.done_at, "the mark is {mark:?}");
    }
    let seen = mark(&*b, &name).await?.ok_or("the mark is gone")?;
    let listed = soon("marks", a.locks().marks(&name)).await??;
    ensure!(listed == [(name.clone(), seen.clone())], "{seen:?} is listed as {listed:?}");
    let guard = hold(h, &*b, &name).await?;
    ensure!(guard.token() > seen.token, "token {} after {}", guard.token(), seen.token);
    soon("release", guard.release()).await??;
    ensure!(clear(&*b, &name).await?, "there was no mark to clear");
    ensure!(!clear(&*a, &name).await?, "the mark was cleared twice");
    done(h, &*b, &name).await?;
    clear(&*a, &name).await?;
    nothing_left(h).await
}

/// Queue, names, revoking a holder and a close leave it alone, and it takes no lock.
async fn a_mark_is_no_entry(h: &dyn Harness) -> Done {
    let (name, a, b) = (fresh("no-entry"), h.client().await?, h.client().await?);
    needs_marks(&*a)?;
    done(h, &*a, &name).await?;
    let named = soon("names", b.locks().names(&name)).await??;
    let queued = queue(&*b, &name).await?;
    ensure!(named.is_empty() && queued.is_empty(), "a mark is shown: {named:?}, {queued:?}");
    let guard = hold(h, &*b, &name).await?;
    revoke_first(&*a, &name).await?;
    drop(guard);
    let seen = mark(&*b, &name).await?.ok_or("the mark went with a holder")?;
    soon("close", a.locks().close()).await??;
    ensure!(mark(&*b, &name).await? == Some(seen), "the mark went with a client");
    ensure!(clear(&*b, &name).await?, "there was no mark to clear");
    nothing_left(h).await
}

/// Work that failed is done again.
async fn none_after_a_failure(h: &dyn Harness) -> Done {
    let (name, a) = (fresh("failed"), h.client().await?);
    needs_marks(&*a)?;
    let failed = run(h, &*a, &name, Err("failed")).await;
    let expected = failed.as_ref().is_err_and(|failure| failure.to_string() == "failed");
    ensure!(expected, "work that failed came to {failed:?}");
    ensure!(!has_mark(&*a, &name).await?, "work that failed is marked as done");
    done(h, &*a, &name).await?;
    clear(&*a, &name).await?;
    nothing_left(h).await
}

/// Not even while there is another holder.
async fn none_after_a_loss(h: &dyn Harness) -> Done {
    let (name, a, b) = (fresh("lost"), h.client().await?, h.client().await?);
    needs_marks(&*a)?;
    let guard = hold(h, &*a, &name).await?;
    revoke_first(&*b, &name).await?;
    let next = hold(h, &*b, &name).await?;
    let marked = soon("mark as done", guard.mark_done(PERIOD)).await?;
    ensure!(matches!(marked, Err(Error::Lost { .. })), "after a loss: {marked:?}");
    ensure!(!has_mark(&*b, &name).await?, "marked as done after a loss");
    keeps!(next.is_valid(), "a late mark cost the next holder its lock");
    soon("release", next.release()).await??;
    nothing_left(h).await
}

/// The request for the mark arrives where the entry is gone.
async fn none_after_a_loss_that_its_holder_does_not_know(h: &dyn Harness) -> Done {
    let (name, a, b) = (fresh("unknown"), h.client().await?, h.client().await?);
    needs_marks(&*a)?;
    let guard = hold(h, &*a, &name).await?;
    a.cut_replies().await?;
    revoke_first(&*b, &name).await?;
    let next = hold(h, &*b, &name).await?;
    let mut marking = pin!(guard.mark_done(PERIOD));
    let sent = poll_once(marking.as_mut()).await;
    a.heal().await?;
    let marked = match sent {
        Poll::Ready(marked) => marked,
        Poll::Pending => promised("the answer", marking).await?,
    };
    ensure!(matches!(marked, Err(Error::Lost { .. })), "after a loss: {marked:?}");
    ensure!(!has_mark(&*b, &name).await?, "marked as done after a loss");
    soon("release", next.release()).await??;
    nothing_left(h).await
}

/// The time of the work is a part of the period, and the period ends.
async fn counts_from_the_grant(h: &dyn Harness) -> Done {
    let (name, a) = (fresh("period"), h.client().await?);
    needs_marks(&*a)?;
    let (guard, worked) = (hold(h, &*a, &name).await?, h.ttl() / 2);
    tokio::time::sleep(worked).await;
    soon("mark as done", guard.mark_done(PERIOD)).await??;
    let seen = mark(&*a, &name).await?.ok_or("no mark")?;
    let left = seen.ends_at.duration_since(seen.done_at)?;
    let most = PERIOD - worked + Duration::from_millis(100);
    ensure!(left <= most, "{left:?} are left of {PERIOD:?} after {worked:?} of work");
    // The mark of a shorter period replaces it.
    soon("mark as done", guard.mark_done(worked + h.ttl())).await??;
    let ended = || async { Ok(!has_mark(&*a, &name).await?) };
    promised("the end of the period", until(ended)).await??;
    soon("release", guard.release()).await??;
    // The store may keep it until another one is written.
    clear(&*a, &name).await?;
    nothing_left(h).await
}

/// The mark takes effect, and its answer does not arrive: it is sent again, and the lock is held
/// until then.
async fn a_lost_answer_is_asked_for_again(h: &dyn Harness) -> Done {
    let (name, a, b) = (fresh("answer"), h.client().await?, h.client().await?);
    needs_marks(&*a)?;
    let before = fresh("before");
    // Once before: a server that must load a script first would not act without an answer.
    done(h, &*a, &before).await?;
    clear(&*b, &before).await?;
    let guard = hold(h, &*a, &name).await?;
    let token = guard.token();
    let work = async move { (guard.mark_done(PERIOD).await, guard) };
    let seen = until(|| async { has_mark(&*b, &name).await });
    let marking = unanswered(&*a, work, seen).await?;
    a.lose_replies().await?;
    let (marked, guard) = promised("the answer", marking).await??;
    ensure!(marked.is_ok(), "the answer is {marked:?}");
    keeps!(guard.is_valid(), "a lost answer cost the lock");
    let seen = mark(&*b, &name).await?.ok_or("no mark")?;
    ensure!(seen.token == token, "the mark of token {token} has {}", seen.token);
    soon("release", guard.release()).await??;
    clear(&*b, &name).await?;
    nothing_left(h).await
}

/// The mark is removed, and the answer does not arrive: the request that is sent again finds none.
async fn a_clear_whose_answer_is_lost_says_that_there_was_a_mark(h: &dyn Harness) -> Done {
    let (name, a, b) = (fresh("cleared"), h.client().await?, h.client().await?);
    needs_marks(&*a)?;
    done(h, &*a, &name).await?;
    let (locks, marked) = (a.locks().clone(), name.clone());
    let work = async move { locks.clear_mark(&marked).await };
    let gone = until(|| async { Ok(!has_mark(&*b, &name).await?) });
    let clearing = unanswered(&*a, work, gone).await?;
    a.lose_replies().await?;
    let cleared = promised("the answer", clearing).await??;
    ensure!(matches!(cleared, Ok(true)), "the answer is {cleared:?}");
    ensure!(!has_mark(&*b, &name).await?, "the mark was not cleared");
    nothing_left(h).await
}

/// Of another name: no run may ever come for the first one again.
async fn an_ended_mark_goes_with_the_next(h: &dyn Harness) -> Done {
    let (first, next, a) = (fresh("ended"), fresh("next"), h.client().await?);
    needs_marks(&*a)?;
    let guard = hold(h, &*a, &first).await?;
    soon("mark as done", guard.mark_done(Duration::from_secs(1))).await??;
    soon("release", guard.release()).await??;
    let ended = || async { Ok(!has_mark(&*a, &first).await?) };
    promised("the end of the period", until(ended)).await??;
    let guard = hold(h, &*a, &next).await?;
    soon("mark as done", guard.mark_done(PERIOD)).await??;
    soon("release", guard.release()).await??;
    ensure!(clear(&*a, &next).await?, "there was no mark to clear");
    nothing_left(h).await
}
