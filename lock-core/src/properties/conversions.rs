//! From exclusive to shared and back: beside all other kinds, if answers are lost, and if the lock
//! is. An upgrade by "create, then delete" leaves both if its client learns of an error (protocols
//! 1b.1).

use std::{
    sync::{
        Arc, Mutex, PoisonError,
        atomic::{AtomicU64, Ordering},
    },
    time::Duration,
};

use tokio::{task::JoinSet, time::timeout};

use super::{Client, Done, Harness, ensure, keeps, property, scene::*};
use crate::{Error, FencingToken, Kind, LockKind, LockName, Locks, LossReason};

property!(all_kinds_exclude_each_other, a_lost_answer, a_caller_that_left, a_lost_lock);

/// What is inside: writers, readers, permits, and the last writer's token.
#[derive(Default)]
struct Room(Mutex<(u32, u32, u32, Option<FencingToken>)>);

const PERMITS: u32 = 12;
const ROUNDS: u64 = 12;

impl Room {
    /// Enters and leaves as a holder of this kind; fails if it may not be in there.
    async fn visit(&self, kind: Kind, token: FencingToken) -> Done {
        self.count(kind, 1)?;
        if kind == Kind::Exclusive {
            let mut inside = self.0.lock().unwrap_or_else(PoisonError::into_inner);
            ensure!(Some(token) > inside.3, "a writer's token {token} after {:?}", inside.3);
            inside.3 = Some(token);
        }
        // A grant too many must have the time to happen.
        tokio::time::sleep(Duration::from_millis(1)).await;
        self.count(kind, -1)
    }

    fn count(&self, kind: Kind, by: i32) -> Done {
        let mut inside = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        let (count, weight) = match kind {
            Kind::Shared => (&mut inside.1, 1),
            Kind::Permit { weight, .. } => (&mut inside.2, weight),
            _ => (&mut inside.0, 1),
        };
        *count = if by > 0 { *count + weight } else { *count - weight };
        let now = (inside.0, inside.1, inside.2);
        let allowed = matches!(now, (0 | 1, 0, 0) | (0, _, 0) | (0, 0, ..=PERMITS));
        ensure!(allowed, "(writers, readers, permits) held at the same time: {now:?}");
        Ok(())
    }
}

/// Writers, readers that become writers, writers that become readers, and permits, of several
/// clients. Some callers leave at any moment.
async fn all_kinds_exclude_each_other(h: &dyn Harness) -> Done {
    let (name, room) = (fresh("mixed"), Arc::new(Room::default()));
    let rounds: Arc<AtomicU64> = Arc::default();
    let (mut clients, mut workers) = (Vec::new(), JoinSet::new());
    for _ in 0..3 {
        let client = h.client().await?;
        needs_kind(&*client, LockKind::Shared)?;
        needs_kind(&*client, LockKind::Permits)?;
        clients.push(client);
    }
    for worker in 0..9 {
        let client = &*clients[worker % 3];
        // Nobody is let in by an expiry.
        let (locks, ttl) = (client.locks().clone(), long(h, client));
        let (name, room, rounds) = (name.clone(), Arc::clone(&room), Arc::clone(&rounds));
        workers.spawn(visit(locks, name, ttl, room, rounds, worker as u64));
    }
    all_done("holders of all kinds", workers, || rounds.load(Ordering::SeqCst)).await?;
    let last = clients[0].locks().lock(&name)?.acquire();
    promised("acquire after the ones that left", last).await??.release().await?;
    nothing_left(h).await
}

async fn visit(
    locks: Locks,
    name: LockName,
    ttl: Duration,
    room: Arc<Room>,
    rounds: Arc<AtomicU64>,
    worker: u64,
) -> Done {
    for n in 0..ROUNDS {
        let turn = worker + n;
        let acquire = async {
            match turn % 5 {
                0 | 3 => locks.lock(&name)?.ttl(ttl).acquire().await,
                1 | 4 => locks.shared(&name)?.ttl(ttl).acquire().await,
                _ if n % 2 == 0 => locks.semaphore(&name, PERMITS)?.ttl(ttl).acquire().await,
                _ => locks.semaphore(&name, PERMITS)?.ttl(ttl).acquire_many(5).await,
            }
        };
        let moment = match n % 3 {
            0 => Duration::from_micros((worker * 7919 + n * 104_729) % 9000),
            _ => Duration::MAX,
        };
        if let Ok(granted) = timeout(moment, acquire).await {
            let mut guard = granted?;
            let kind = guard.kind();
            room.visit(kind, guard.token()).await?;
            match kind {
                Kind::Exclusive if turn.is_multiple_of(2) => guard.downgrade().await?,
                Kind::Shared => drop(guard.try_upgrade().await?),
                _ => {}
            }
            if guard.kind() != kind {
                room.visit(guard.kind(), guard.token()).await?;
            }
            guard.release().await?;
        }
        rounds.fetch_add(1, Ordering::SeqCst);
    }
    Ok(())
}

/// Waits until the store shows one holder of this kind.
async fn is_held_as(client: &dyn Client, name: &LockName, kind: Kind) -> Done {
    until(|| async { Ok(holders(client, name).await? == [kind]) }).await
}

/// Down and up again: each takes effect once, and the token of the upgrade is the first request's.
async fn a_lost_answer(h: &dyn Harness) -> Done {
    let (name, a, b) = (fresh("answer"), h.client().await?, h.client().await?);
    needs_kind(&*a, LockKind::Shared)?;
    let mut guard = soon("acquire", a.locks().lock(&name)?.ttl(long(h, &*a)).acquire()).await??;
    // A server may have to load its scripts first.
    soon("downgrade", guard.downgrade()).await??;
    ensure!(soon("upgrade", guard.try_upgrade()).await??, "a reader that is alone");
    let token = guard.token();
    let work = async move { guard.downgrade().await.map(|()| guard) };
    let asked = unanswered(&*a, work, is_held_as(&*b, &name, Kind::Shared)).await?;
    a.lose_replies().await?;
    let mut guard = promised("the downgrade whose answer was lost", asked).await???;
    ensure!(guard.kind() == Kind::Shared && guard.token() == token, "downgraded to {guard:?}");
    let beside = soon("acquire shared", b.locks().shared(&name)?.acquire()).await??;
    keeps!(guard.is_valid() && beside.is_valid(), "a reader beside a downgraded writer is lost");
    soon("release", beside.release()).await??;
    let work = async move { guard.try_upgrade().await.map(|upgraded| (upgraded, guard)) };
    let asked = unanswered(&*a, work, is_held_as(&*b, &name, Kind::Exclusive)).await?;
    let (is_done, before) = (
        holders(&*b, &name).await?.contains(&Kind::Exclusive),
        // While a new entry takes the place of the old one, a store shows both.
        queue(&*b, &name).await?,
    );
    a.lose_replies().await?;
    let (upgraded, guard) = promised("the upgrade whose answer was lost", asked).await???;
    ensure!(upgraded && guard.kind() == Kind::Exclusive, "a reader that is alone: {guard:?}");
    ensure!(guard.token() > token, "the upgrade's token {} is not new", guard.token());
    let shown = queue(&*b, &name).await?;
    ensure!(shown.len() == 1, "one holder is shown as {shown:?}");
    let now = shown[0].holder.token;
    ensure!(now.is_none_or(|now| now == guard.token()), "{guard:?} is shown with {now:?}");
    let once = !is_done || before.len() > 1 || before[0].holder.token == now;
    ensure!(once, "upgraded twice: {before:?} became {now:?}");
    keeps!(guard.is_valid(), "upgraded, and not held");
    soon("release", guard.release()).await??;
    nothing_left(h).await
}

/// The guard is dropped while it is not known whether the store has acted.
async fn a_caller_that_left(h: &dyn Harness) -> Done {
    let (name, a, b) = (fresh("answer"), h.client().await?, h.client().await?);
    for arrives in [true, false] {
        let lock = lock_as(h, &*a, &name, Kind::Shared)?.ttl(long(h, &*a));
        let mut guard = soon("acquire", lock.acquire()).await??;
        let work = async move { guard.try_upgrade().await.map(|_| guard) };
        let asked = if arrives {
            unanswered(&*a, work, is_held_as(&*b, &name, Kind::Exclusive)).await?
        } else {
            a.cut().await?;
            let asked = tokio::spawn(work);
            tokio::task::yield_now().await;
            asked
        };
        asked.abort();
        a.lose_replies().await?;
        nothing_left(h).await?;
        promised("the next writer", b.locks().lock(&name)?.acquire()).await??.release().await?;
    }
    Ok(())
}

/// The holder learns of the loss, and the next holder keeps the lock.
async fn a_lost_lock(h: &dyn Harness) -> Done {
    let (name, a, b) = (fresh("lost"), h.client().await?, h.client().await?);
    needs_kind(&*a, LockKind::Shared)?;
    for kind in [Kind::Exclusive, Kind::Shared] {
        let lock = a.locks().lock(&name)?.kind(kind)?.ttl(long(h, &*a));
        let mut guard = soon("acquire", lock.acquire()).await??;
        revoke_first(&*b, &name).await?;
        let next = soon("acquire", b.locks().lock(&name)?.kind(kind)?.acquire()).await??;
        let converted = match kind {
            Kind::Exclusive => soon("downgrade", guard.downgrade()).await?.map(|()| true),
            _ => soon("upgrade", guard.try_upgrade()).await?,
        };
        let lost = matches!(converted, Err(Error::Lost { reason: LossReason::EntryGone, .. }));
        ensure!(lost, "the conversion of a lost lock was answered with {converted:?}");
        drop(guard);
        let now = holders(&*b, &name).await?;
        ensure!(now == [kind], "the holders became {now:?}");
        keeps!(next.is_valid(), "the conversion of a lost lock cost the next holder its own");
        soon("release", next.release()).await??;
        nothing_left(h).await?;
    }
    Ok(())
}
