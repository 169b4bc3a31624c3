//! C39: each error of etcd's package has its counterpart.

use std::time::Duration;

use async_trait::async_trait;
use distlock::{Error, LockGuard, Locks};
use tokio::{
    task::JoinHandle,
    time::{sleep, timeout},
};

use crate::{Claim, Experiment, Failure, Figure, Nature, Outcome, Side, Stage};

/// C39.
pub(crate) struct Errors;

const CLAIM: Claim = Claim {
    number: 39,
    title: "Errors and their counterparts",
    claimed: "TryLock answers ErrLocked, a dead session ErrSessionExpired, unlocking what is not \
              held ErrLockReleased, and a closed watch \"lost watcher\".",
    done: "Each situation is provoked in distlock: a lock that is held, a wait that is too long, a \
           closed client, a lock that an operator has revoked, a place in line that is gone. In \
           the control nothing is held, closed or revoked.",
    measured: "Which of the five situations end in an error of their own.",
    threshold: "Holds if all five do.",
};

const TTL: Duration = Duration::from_secs(10);
const SHORT: Duration = Duration::from_millis(300);
const PATIENCE: Duration = Duration::from_secs(20);
const PAUSE: Duration = Duration::from_millis(10);

/// What etcd's package says, and what distlock says in the same situation.
struct Counterpart {
    etcd: &'static str,
    distlock: Result<String, String>,
}

#[async_trait]
impl Experiment for Errors {
    fn claim(&self) -> &'static Claim {
        &CLAIM
    }

    async fn run(&self, stage: &Stage) -> Result<Outcome, Failure> {
        let provoked = !stage.is_swapped();
        let found = [
            locked(stage, provoked).await?,
            too_long(stage, provoked).await?,
            closed(stage, provoked).await?,
            released(stage, provoked).await?,
            lost_place(stage, provoked).await?,
        ];
        let own = found.iter().filter(|one| one.distlock.is_ok()).count();
        let happened = format!("{own} of {} situations have an error of their own", found.len());
        let mut side =
            Side::new("distlock", Nature::Distlock, own == found.len(), happened.clone());
        for Counterpart { etcd, distlock } in &found {
            side = side.evidence(match distlock {
                Ok(ours) => format!("{etcd}: {ours}"),
                Err(other) => format!("{etcd}: no error, but {other}"),
            });
        }
        let figure = Figure::count("errors of their own", own as f64, "of 5");
        Ok(Outcome::holds_if(own == found.len(), happened).side(side).figure(figure))
    }
}

/// Somebody has the lock, if that is to be provoked.
async fn held(locks: &Locks, name: &str, is_held: bool) -> Result<Option<LockGuard>, Failure> {
    Ok(match is_held {
        true => Some(locks.lock(name)?.ttl(TTL).acquire().await?),
        false => None,
    })
}

async fn locked(stage: &Stage, provoked: bool) -> Result<Counterpart, Failure> {
    let (a, b, name) = (stage.connect().await?, stage.connect().await?, stage.name("locked"));
    let holder = held(&a, &name, provoked).await?;
    let tried = b.lock(&name)?.ttl(TTL).try_acquire().await?;
    let distlock = match tried {
        None => Ok("try_acquire answers None".into()),
        Some(_) => Err("try_acquire gets the lock".into()),
    };
    drop(holder);
    Ok(Counterpart { etcd: "TryLock, ErrLocked", distlock })
}

async fn too_long(stage: &Stage, provoked: bool) -> Result<Counterpart, Failure> {
    let (a, b, name) = (stage.connect().await?, stage.connect().await?, stage.name("wait"));
    let holder = held(&a, &name, provoked).await?;
    let waited = b.lock(&name)?.ttl(TTL).wait(if provoked { SHORT } else { PATIENCE });
    let distlock = match waited.acquire().await {
        Err(error @ Error::WaitTimeout { .. }) => Ok(format!("WaitTimeout: {error}")),
        Err(error) => Err(error.to_string()),
        Ok(_) => Err("the lock".into()),
    };
    drop(holder);
    Ok(Counterpart { etcd: "Lock with a context that ends, DeadlineExceeded", distlock })
}

async fn closed(stage: &Stage, provoked: bool) -> Result<Counterpart, Failure> {
    let (locks, name) = (stage.connect().await?, stage.name("closed"));
    let holder = locks.lock(&name)?.ttl(TTL).acquire().await?;
    if provoked {
        locks.close().await?;
    }
    let asked = locks.lock(stage.name("later"))?.ttl(TTL).acquire().await;
    let distlock = match (holder.is_valid(), asked) {
        (false, Err(error @ Error::Closed { .. })) => {
            let reason = timeout(PATIENCE, holder.lost()).await?;
            Ok(format!("Closed: {error}; the guard is lost: {reason}"))
        }
        (_, Err(error)) => Err(error.to_string()),
        (_, Ok(_)) => Err("the session lives".into()),
    };
    Ok(Counterpart { etcd: "a session that has ended, ErrSessionExpired", distlock })
}

async fn released(stage: &Stage, provoked: bool) -> Result<Counterpart, Failure> {
    let (a, b, name) = (stage.connect().await?, stage.connect().await?, stage.name("revoked"));
    let holder = a.lock(&name)?.ttl(TTL).acquire().await?;
    if provoked {
        let entries = b.inspect(&name).await?;
        let attempt = entries.first().and_then(|entry| entry.attempt).ok_or("nobody holds it")?;
        b.revoke(&name, attempt).await?;
        // Before it is told, a release finds the lock gone, which is all that it wants.
        timeout(PATIENCE, holder.lost()).await?;
    }
    let distlock = match holder.release().await {
        Err(error @ Error::Lost { .. }) => Ok(format!("Lost: {error}")),
        Err(error) => Err(error.to_string()),
        Ok(()) => Err("the release is confirmed".into()),
    };
    Ok(Counterpart { etcd: "Unlock of what is not held, ErrLockReleased", distlock })
}

async fn lost_place(stage: &Stage, provoked: bool) -> Result<Counterpart, Failure> {
    let (a, b, name) = (stage.connect().await?, stage.connect().await?, stage.name("place"));
    let holder = a.lock(&name)?.ttl(TTL).acquire().await?;
    let waiting = tokio::spawn(b.lock(&name)?.ttl(TTL).acquire());
    let attempt = timeout(PATIENCE, waiter(&a, &name, &waiting)).await??;
    if provoked {
        a.revoke(&name, attempt).await?;
    } else {
        holder.release().await?;
    }
    let distlock = match timeout(PATIENCE, waiting).await?? {
        Err(error @ Error::PlaceLost { .. }) => Ok(format!("PlaceLost: {error}")),
        Err(error) => Err(error.to_string()),
        Ok(_) => Err("the lock, when it is its turn".into()),
    };
    Ok(Counterpart { etcd: "a wait whose watch is closed, \"lost watcher\"", distlock })
}

/// The attempt of the one that waits, when it stands in line.
async fn waiter<T>(
    locks: &Locks,
    name: &str,
    waiting: &JoinHandle<T>,
) -> Result<uuid::Uuid, Failure> {
    loop {
        let entries = locks.inspect(name).await?;
        if let Some(entry) = entries.iter().find(|entry| !entry.holds) {
            return entry.attempt.ok_or_else(|| "a foreign client waits".into());
        }
        if waiting.is_finished() {
            return Err("the wait has ended".into());
        }
        sleep(PAUSE).await;
    }
}
