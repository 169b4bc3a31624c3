//! C39: each way in which a lock can fail has its own error.

use std::{future::Future, time::Duration};

use distlock::{Error, LockGuard, Locks};
use uuid::Uuid;

use crate::{Claim, Failure, Figure, Nature, Outcome, Side, Stage, scenario::joined};

pub(super) const CLAIM: Claim = Claim {
    number: 39,
    title: "Each failure has its error",
    claimed: "TryLock answers ErrLocked, a dead session ErrSessionExpired, unlocking what is not \
              held ErrLockReleased, and a closed watch \"lost watcher\".",
    done: "The four are provoked on distlock: somebody else holds the lock, an operator takes it \
           away, its holder releases it afterwards, a waiter's place is taken away. In the control \
           nobody disturbs.",
    measured: "How many of the four give an answer of their own.",
    threshold: "Holds if all four do.",
};

const TTL: Duration = Duration::from_secs(10);
const PATIENCE: Duration = Duration::from_secs(30);

pub(super) async fn run(stage: &Stage) -> Result<Outcome, Failure> {
    let (ours, other) = (stage.connect().await?, stage.connect().await?);
    let (busy, taken, left) = (stage.name("busy"), stage.name("taken"), stage.name("queue"));
    let disturbs = stage.pick(true, false);
    let answers = [
        ("ErrLocked", try_lock(&ours, &other, &busy, disturbs).await?),
        ("ErrSessionExpired", dead_session(&ours, &other, &taken, disturbs).await?),
        ("ErrLockReleased", not_held(&ours, &other, &taken, disturbs).await?),
        ("lost watcher", lost_place(&ours, &other, &left, disturbs).await?),
    ];
    let told = answers.iter().filter(|(_, answer)| answer.is_some()).count();
    let happened = format!("{told} of 4 failures have an answer of their own");
    let side = Side::new("distlock", Nature::Distlock, told == 4, happened.clone());
    let side = answers.iter().fold(side, |side, (theirs, answer)| {
        let answer = answer.as_deref().unwrap_or("no error");
        side.evidence(format!("{theirs} in Go: {answer}"))
    });
    ours.close().await?;
    other.close().await?;
    Ok(Outcome::holds_if(told == 4, happened).side(side).figure(Figure::count(
        "failures with an answer of their own",
        told as f64,
        "of 4",
    )))
}

/// Another client holds the lock.
async fn try_lock(
    ours: &Locks,
    other: &Locks,
    name: &str,
    disturbs: bool,
) -> Result<Option<String>, Failure> {
    let held = match disturbs {
        true => Some(other.lock(name)?.ttl(TTL).acquire().await?),
        false => None,
    };
    let tried = ours.lock(name)?.ttl(TTL).try_acquire().await?;
    let answer = tried.is_none().then(|| "try_acquire() answers None".to_owned());
    for guard in held.into_iter().chain(tried) {
        guard.release().await?;
    }
    Ok(answer)
}

/// The store ends a hold: the holder learns the reason.
async fn dead_session(
    ours: &Locks,
    other: &Locks,
    name: &str,
    disturbs: bool,
) -> Result<Option<String>, Failure> {
    let guard = ours.lock(name)?.ttl(TTL).acquire().await?;
    if !disturbs {
        guard.release().await?;
        return Ok(None);
    }
    revoke(other, name).await?;
    let reason = within(guard.lost()).await?;
    Ok(Some(format!("lost() answers: {reason}")))
}

/// A holder releases a lock that is no longer its own.
async fn not_held(
    ours: &Locks,
    other: &Locks,
    name: &str,
    disturbs: bool,
) -> Result<Option<String>, Failure> {
    let guard: LockGuard = ours.lock(name)?.ttl(TTL).acquire().await?;
    if disturbs {
        revoke(other, name).await?;
        within(guard.lost()).await?;
    }
    match guard.release().await {
        Ok(()) => Ok(None),
        Err(error @ Error::Lost { .. }) => Ok(Some(format!("release() fails: {error}"))),
        Err(error) => Err(error.into()),
    }
}

/// A waiter loses its place.
async fn lost_place(
    ours: &Locks,
    other: &Locks,
    name: &str,
    disturbs: bool,
) -> Result<Option<String>, Failure> {
    let held = other.lock(name)?.ttl(TTL).acquire().await?;
    let waiter = tokio::spawn(ours.lock(name)?.ttl(TTL).wait(PATIENCE).acquire());
    joined(other, name, 1).await?;
    match disturbs {
        true => revoke(other, name).await?,
        false => held.release().await?,
    }
    match waiter.await? {
        Ok(guard) => guard.release().await.map(|()| None).map_err(Failure::from),
        Err(error @ Error::PlaceLost { .. }) => Ok(Some(format!("acquire() fails: {error}"))),
        Err(error) => Err(error.into()),
    }
}

/// Removes the last entry of a queue: the only holder, or the waiter behind it.
async fn revoke(locks: &Locks, name: &str) -> Result<(), Failure> {
    let queue = locks.inspect(name).await?;
    let last: Option<Uuid> = queue.last().and_then(|entry| entry.attempt);
    let revoked = locks.revoke(name, last.ok_or("nobody is in the queue")?).await?;
    revoked.then_some(()).ok_or_else(|| "nothing was revoked".into())
}

async fn within<T>(what: impl Future<Output = T>) -> Result<T, Failure> {
    let limit = tokio::time::timeout(PATIENCE, what).await;
    limit.map_err(|_| format!("nothing happened within {PATIENCE:?}").into())
}
