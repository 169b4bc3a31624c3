//! Steps that many checks share.

use std::{
    future::{Future, poll_fn},
    pin::Pin,
    task::Poll,
    time::Duration,
};

use tokio::{
    task::{JoinHandle, JoinSet},
    time::timeout,
};

use super::{
    Client, Failure, Harness, Late, Missed,
    as_mutex::Mutex,
    outcome::{Done, needs},
};
use crate::{
    Entry, Error, Fairness, Kind, Leader, Lock, LockGuard, LockKind, LockName, Observer, Result,
};

/// The limit for everything that should be quick; only a check that fails waits this long.
pub(super) const PATIENCE: Duration = Duration::from_secs(20);

/// A name that was never used before.
pub(super) fn fresh(tag: &str) -> LockName {
    // A tag and a UUID are far below the limit.
    LockName::new(format!("{tag}-{}", uuid::Uuid::new_v4().simple())).expect("a short name")
}

/// Fails with [`Late`] if the work takes longer than [`PATIENCE`]: for work without a promise, such
/// as the answer to a request.
pub(super) async fn soon<T>(what: &str, work: impl Future<Output = T>) -> Result<T, Failure> {
    Ok(timeout(PATIENCE, work).await.map_err(|_| Late(still_not(what, PATIENCE)))?)
}

/// Fails with [`Missed`] if the work takes longer than [`PATIENCE`]: for promised work, such as a
/// grant after a release.
pub(super) async fn promised<T>(what: &str, work: impl Future<Output = T>) -> Result<T, Failure> {
    within(PATIENCE, what, work).await
}

/// Fails with [`Missed`] if promised work takes longer than this.
pub(super) async fn within<T>(
    limit: Duration,
    what: &str,
    work: impl Future<Output = T>,
) -> Result<T, Failure> {
    Ok(timeout(limit, work).await.map_err(|_| Missed(still_not(what, limit)))?)
}

fn still_not(what: &str, limit: Duration) -> String {
    format!("{what}: still not after {limit:?}")
}

/// The next change of the leader that an observer reports.
pub(super) async fn next(observer: &mut Observer) -> Result<Option<Leader>, Failure> {
    let change = promised("a change of the leader", observer.next()).await?;
    change.ok_or_else(|| Missed("the observer ended".to_owned()))?.map_err(Failure::from)
}

/// The next leader. There may be none for a moment.
pub(super) async fn next_leader(observer: &mut Observer) -> Result<Option<Leader>, Failure> {
    match next(observer).await? {
        None => next(observer).await,
        now => Ok(now),
    }
}

/// Polls a future once.
pub(super) async fn poll_once<F: Future + ?Sized>(mut future: Pin<&mut F>) -> Poll<F::Output> {
    poll_fn(|cx| Poll::Ready(future.as_mut().poll(cx))).await
}

/// Waits for workers that wait for each other: the first failure counts. Slow workers may take
/// their time, but one of them must make progress.
pub(super) async fn all_done(
    what: &str,
    mut workers: JoinSet<Done>,
    rounds: impl Fn() -> u64,
) -> Done {
    loop {
        let before = rounds();
        match timeout(PATIENCE, workers.join_next()).await {
            Ok(None) => return Ok(()),
            Ok(Some(ended)) => ended??,
            Err(_) if rounds() != before => {}
            Err(_) => return Err(Missed(format!("{what}: nobody got on for {PATIENCE:?}")).into()),
        }
    }
}

/// The lock `name` of a client, with the harness's TTL.
pub(super) fn lock(
    h: &dyn Harness,
    client: &dyn Client,
    name: &LockName,
) -> Result<Mutex, Failure> {
    Ok(h.guise().lock(client, name)?.ttl(h.ttl()))
}

pub(super) fn has_kind(client: &dyn Client, kind: LockKind) -> bool {
    client.locks().guarantees().kinds.contains(&kind)
}

/// Skips the check of a kind that the store does not have.
pub(super) fn needs_kind(client: &dyn Client, kind: LockKind) -> Done {
    let store = client.locks().guarantees().store;
    needs!(has_kind(client, kind), "{store} has no {kind} in this mode");
    Ok(())
}

/// Acquires, which must succeed soon.
pub(super) async fn acquire(
    h: &dyn Harness,
    client: &dyn Client,
    name: &LockName,
) -> Result<LockGuard, Failure> {
    Ok(soon("acquire", lock(h, client, name)?.acquire()).await??)
}

/// The lock `name` of a client as one of this kind, with the harness's TTL. Skips the check if the
/// store does not have the kind.
pub(super) fn lock_as(
    h: &dyn Harness,
    client: &dyn Client,
    name: &LockName,
    kind: Kind,
) -> Result<Lock, Failure> {
    needs_kind(client, kind.into())?;
    Ok(client.locks().lock(name)?.kind(kind)?.ttl(h.ttl()))
}

/// Acquires as this kind, which must succeed soon.
pub(super) async fn acquire_as(
    h: &dyn Harness,
    client: &dyn Client,
    name: &LockName,
    kind: Kind,
) -> Result<LockGuard, Failure> {
    Ok(soon("acquire", lock_as(h, client, name, kind)?.acquire()).await??)
}

/// Tries the lock as this kind, and gives it back. Returns whether the try was granted.
pub(super) async fn is_free(
    h: &dyn Harness,
    client: &dyn Client,
    name: &LockName,
    kind: Kind,
) -> Result<bool, Failure> {
    match soon("try", lock_as(h, client, name, kind)?.try_acquire()).await?? {
        Some(guard) => soon("release", guard.release()).await?.map(|()| true).map_err(Into::into),
        None => Ok(false),
    }
}

/// Starts an acquire in a task and returns when it is in the queue as waiter number `position`.
pub(super) async fn queue_up(
    h: &dyn Harness,
    client: &dyn Client,
    name: &LockName,
    position: usize,
) -> Result<JoinHandle<Result<LockGuard>>, Failure> {
    let waiter = tokio::spawn(lock(h, client, name)?.acquire());
    wait_for_queue(client, name, position + 1).await?;
    Ok(waiter)
}

/// Whether the store shows its waiters; a store without an order does not.
pub(super) fn shows_waiters(client: &dyn Client) -> bool {
    client.locks().guarantees().fairness == Fairness::Fifo
}

/// Skips a check of waiters that the store does not show.
pub(super) fn needs_waiters(client: &dyn Client) -> Done {
    needs!(shows_waiters(client), "waiters have no entry in this mode");
    Ok(())
}

/// Waits until holder and waiters are this many, as far as the store shows them.
pub(super) async fn wait_for_queue(client: &dyn Client, name: &LockName, length: usize) -> Done {
    soon(&format!("{length} in the queue of {name}"), queue_of(client, name, length)).await?
}

/// The holders and waiters that the store shows, in order.
pub(super) async fn queue(client: &dyn Client, name: &LockName) -> Result<Vec<Entry>, Failure> {
    Ok(soon("inspect", client.locks().inspect(name)).await??)
}

/// The holders that the store shows: a grant may be on its way to the waiter.
pub(super) async fn holders(client: &dyn Client, name: &LockName) -> Result<Vec<Kind>, Failure> {
    let queue = queue(client, name).await?;
    Ok(queue.iter().filter(|entry| entry.holds).map(|entry| entry.kind).collect())
}

/// Takes the lock away from the first one that the store shows.
pub(super) async fn revoke_first(client: &dyn Client, name: &LockName) -> Done {
    let queue = queue(client, name).await?;
    let attempt = queue.first().and_then(|entry| entry.attempt).ok_or("no holder is shown")?;
    match soon("revoke", client.locks().revoke(name, attempt)).await?? {
        true => Ok(()),
        false => Err("nothing was revoked".into()),
    }
}

/// The same as [`wait_for_queue`], as a promise of the property: a client has left, or was let in.
pub(super) async fn queue_becomes(client: &dyn Client, name: &LockName, length: usize) -> Done {
    promised(&format!("{length} in the queue of {name}"), queue_of(client, name, length)).await?
}

/// Asks the store, because only the store knows.
async fn queue_of(client: &dyn Client, name: &LockName, length: usize) -> Done {
    let length = if shows_waiters(client) { length } else { length.min(1) };
    until(|| async { Ok(client.locks().inspect(name).await?.len() == length) }).await
}

/// Looks again and again until the look finds that it is so.
pub(super) async fn until<F: Future<Output = Result<bool, Failure>>>(look: impl Fn() -> F) -> Done {
    while !look().await? {
        tokio::time::sleep(Duration::from_millis(5)).await;
    }
    Ok(())
}

/// A TTL that is longer than a check: nothing expires, and nothing is put right by an expiry.
pub(super) fn long(h: &dyn Harness, client: &dyn Client) -> Duration {
    (PATIENCE * 2).max(h.ttl() * 20).min(*client.locks().guarantees().ttl.end())
}

/// A TTL that a restart or a busy machine does not let end, and that is not too long for stores
/// which tell a loss at the next renewal.
pub(super) fn outlasting(h: &dyn Harness, client: &dyn Client) -> Duration {
    (h.ttl() * 2).min(*client.locks().guarantees().ttl.end())
}

/// Starts work of a client whose requests take effect and whose answers do not arrive, until `done`
/// sees the effect. A store that needs several requests for the work may not get that far. Then end
/// it with [`lose_replies`](Client::lose_replies): the client must ask again.
pub(super) async fn unanswered<T: Send + 'static>(
    client: &dyn Client,
    work: impl Future<Output = T> + Send + 'static,
    done: impl Future<Output = Done>,
) -> Result<JoinHandle<T>, Failure> {
    client.cut_replies().await?;
    let work = tokio::spawn(work);
    // Most of the time that a try has is left for the second answer.
    timeout(Duration::from_secs(1), done).await.unwrap_or(Ok(()))?;
    Ok(work)
}

/// Whether a try whose answer was lost may end like this. A store without a queue may ask once, as
/// for the votes of a majority, and takes back what it may have got.
pub(super) fn is_in_doubt<T>(client: &dyn Client, tried: &Result<T>) -> bool {
    !shows_waiters(client) && matches!(tried, Err(Error::Unavailable { .. }))
}

/// When a holder that is gone must be replaced: its TTL, the store's own slack, and a second.
pub(super) fn expiry_limit(h: &dyn Harness, client: &dyn Client) -> Duration {
    h.ttl() + client.locks().guarantees().expiry_slack + Duration::from_secs(1)
}

/// Waits until nothing is left in the store; otherwise the error says what is left.
pub(super) async fn nothing_left(h: &dyn Harness) -> Done {
    let mut left = Vec::new();
    let mut pause = Duration::from_millis(20);
    let empty = timeout(PATIENCE, async {
        loop {
            left = h.leftovers().await?;
            if left.is_empty() {
                return Ok::<_, Failure>(());
            }
            tokio::time::sleep(pause).await;
            // An entry that waits for its expiry is not asked for a hundred times.
            pause = (2 * pause).min(Duration::from_millis(500));
        }
    })
    .await;
    match empty {
        Ok(done) => done,
        // The harness has not returned what is left.
        Err(_) if left.is_empty() => {
            Err(Late(still_not("what is left in the store", PATIENCE)).into())
        }
        Err(_) => Err(Missed(format!("{} left in the store: {:.5?}", left.len(), left)).into()),
    }
}
