//! Several locks are taken together or not at all, and overlapping sets do not deadlock.
//! DistributedLock.NET's `CompositeDistributedLock` and redisson's `MultiLock` try, fail and try
//! again.

use std::{
    sync::{
        Arc,
        atomic::{AtomicBool, AtomicU64, Ordering},
    },
    time::Duration,
};

use tokio::{task::JoinSet, time::timeout};

use super::{Client, Done, Failure, Harness, ensure, keeps, property, scene::*};
use crate::{
    Error, FencingToken,
    Kind::{self, Exclusive, Shared},
    LockKind, LockName, LockSet, Locks, LossReason,
};

property!(
    all_or_nothing,
    overlapping_sets_in_any_order,
    a_set_waits_for_its_names,
    sets_and_single_locks_share_the_tokens,
    dropped_at_any_moment,
    one_of_its_locks_is_revoked,
    a_lost_answer_to_a_set,
    a_set_of_a_caller_that_left,
    shared_sets_are_held_together,
    a_shared_set_and_a_writer,
    a_set_of_both_kinds,
    a_shared_set_waits_for_a_writer,
);

const WORKERS: usize = 6;
const ROUNDS: usize = 6;

fn names() -> [LockName; 3] {
    let tag = uuid::Uuid::new_v4().simple().to_string();
    ["x", "y", "z"].map(|end| LockName::new(format!("set-{tag}-{end}")).expect("a short name"))
}

fn set(h: &dyn Harness, locks: &Locks, names: &[&LockName]) -> Result<LockSet, Failure> {
    Ok(locks.all(names)?.ttl(h.ttl()))
}

/// Holds each name as this kind: one that is not free is enough to refuse the set, at any place in
/// it, and the others stay free.
async fn refused_as_a_whole(
    h: &dyn Harness,
    set: &LockSet,
    holder: &dyn Client,
    names: &[LockName],
    kind: Kind,
) -> Done {
    for taken in names {
        let guard = acquire_as(h, holder, taken, kind).await?;
        let granted = soon("try_acquire", set.try_acquire()).await??.is_some();
        ensure!(!granted, "a set was granted although {taken} was held: {kind}");
        for free in names.iter().filter(|name| *name != taken) {
            let is_free = is_free(h, holder, free, Exclusive).await?;
            ensure!(is_free, "a set that was refused has kept {free}");
        }
        soon("release", guard.release()).await??;
    }
    Ok(())
}

async fn all_or_nothing(h: &dyn Harness) -> Done {
    let (names, a, b) = (names(), h.client().await?, h.client().await?);
    let [x, y, z] = &names;
    let all = set(h, b.locks(), &[z, y, x])?;
    refused_as_a_whole(h, &all, &*a, &names, Exclusive).await?;
    let held =
        soon("try_acquire", all.try_acquire()).await??.ok_or("the free set was not taken")?;
    for name in &names {
        let busy = soon("try", lock(h, &*a, name)?.try_acquire()).await??;
        ensure!(busy.is_none(), "{name} was granted although a set holds it");
    }
    ensure!(held.tokens().map(|(name, _)| name).eq(&names), "the set holds {held:?}");
    soon("release", held.release()).await??;
    nothing_left(h).await
}

/// Each of three pairs of three names, named in both orders, by workers of several clients.
async fn overlapping_sets_in_any_order(h: &dyn Harness) -> Done {
    let names = names();
    let inside: Arc<[AtomicBool; 3]> = Arc::default();
    let rounds = Arc::new(AtomicU64::new(0));
    let mut workers = JoinSet::new();
    for worker in 0..WORKERS {
        let client = h.client().await?;
        let (first, second) = (worker % 3, (worker + 1 + worker / 3) % 3);
        let set = set(h, client.locks(), &[&names[first], &names[second]])?;
        let (inside, rounds) = (inside.clone(), rounds.clone());
        workers.spawn(async move {
            // The client lives as long as its locks are used.
            let client = client;
            for _ in 0..ROUNDS {
                let held = set.acquire().await?;
                let entered = [first, second].map(|i| inside[i].swap(true, Ordering::SeqCst));
                // A round trip inside: a second grant must have the time to happen.
                client.locks().inspect("elsewhere").await?;
                [first, second].iter().for_each(|i| inside[*i].store(false, Ordering::SeqCst));
                ensure!(entered == [false; 2], "two sets with a name in common were held at once");
                held.release().await?;
                rounds.fetch_add(1, Ordering::SeqCst);
            }
            Ok(())
        });
    }
    all_done("overlapping sets", workers, || rounds.load(Ordering::SeqCst)).await?;
    nothing_left(h).await
}

/// It gets them when the last one is free, holds them all, and frees them all when it is dropped.
async fn a_set_waits_for_its_names(h: &dyn Harness) -> Done {
    let (names, a, b) = (names(), h.client().await?, h.client().await?);
    let [x, y, z] = &names;
    let (first, last) = (acquire(h, &*a, x).await?, acquire(h, &*a, z).await?);
    let waiting = tokio::spawn(set(h, b.locks(), &[x, y, z])?.acquire());
    wait_for_queue(&*a, x, 2).await?;
    soon("release", first.release()).await??;
    queue_becomes(&*a, z, 2).await?;
    ensure!(!waiting.is_finished(), "a set was granted although {z} was held");
    soon("release", last.release()).await??;
    let held = promised("the set", waiting).await???;
    keeps!(held.is_valid(), "the set was granted and is not held: {held:?}");
    drop(held);
    for name in &names {
        let freed = lock(h, &*a, name)?.acquire();
        promised("a name of the dropped set", freed).await??.release().await?;
    }
    nothing_left(h).await
}

async fn sets_and_single_locks_share_the_tokens(h: &dyn Harness) -> Done {
    let (names, a) = (names(), h.client().await?);
    let mut last = [FencingToken::new(0); 3];
    for _ in 0..3 {
        let held = soon("a set", set(h, a.locks(), &names.each_ref())?.acquire()).await??;
        let tokens: Vec<_> = held.tokens().map(|(_, token)| token).collect();
        soon("release", held.release()).await??;
        for ((name, token), last) in names.iter().zip(tokens).zip(&mut last) {
            ensure!(token > *last, "{name}: token {token} of a set after {last}");
            let guard = acquire(h, &*a, name).await?;
            ensure!(guard.token() > token, "{name}: token {} after {token}", guard.token());
            *last = guard.token();
            soon("release", guard.release()).await??;
        }
    }
    Ok(())
}

/// Overlapping sets and single locks of two clients, given up before they are sent, while they
/// wait, or when they are granted.
async fn dropped_at_any_moment(h: &dyn Harness) -> Done {
    const DROPS: u64 = 20;
    let (names, a, b) = (names(), h.client().await?, h.client().await?);
    let (rounds, mut workers) = (Arc::new(AtomicU64::new(0)), JoinSet::new());
    for worker in 0..WORKERS {
        let client = if worker % 2 == 0 { &a } else { &b };
        let (first, second) = (worker % 3, (worker + 1 + worker / 3) % 3);
        let pair = [&names[first], &names[second]];
        // Of one name, it is a single lock.
        let set = set(h, client.locks(), if worker < 4 { &pair[..] } else { &pair[..1] })?;
        let (set, rounds) = (set.ttl(long(h, &**client)), rounds.clone());
        workers.spawn(async move {
            for n in 0..DROPS {
                let moment = Duration::from_micros((worker as u64 * 7919 + n * 1_047) % 6000);
                match n % 3 {
                    0 => drop(timeout(moment, set.try_acquire()).await),
                    _ => drop(timeout(moment, set.acquire()).await),
                }
                rounds.fetch_add(1, Ordering::SeqCst);
            }
            Ok(())
        });
    }
    all_done("sets that are given up", workers, || rounds.load(Ordering::SeqCst)).await?;
    let all = set(h, a.locks(), &names.each_ref())?.acquire();
    promised("all names after the sets that were given up", all).await??.release().await?;
    nothing_left(h).await
}

/// The set is lost, and the guard says by which name. The others are held until it is given back.
async fn one_of_its_locks_is_revoked(h: &dyn Harness) -> Done {
    let (names, a, b) = (names(), h.client().await?, h.client().await?);
    let set = set(h, a.locks(), &names.each_ref())?.ttl(outlasting(h, &*a));
    let held = soon("a set", set.acquire()).await??;
    revoke_first(&*b, &names[1]).await?;
    let lost = promised("the loss", held.lost()).await?;
    keeps!(lost == (names[1].clone(), LossReason::EntryGone), "told {lost:?}");
    ensure!(!held.is_valid(), "a set without one of its locks is valid");
    for kept in [&names[0], &names[2]] {
        keeps!(held.get(kept).is_some_and(crate::Held::is_valid), "{kept} was lost as well");
        let busy = soon("try", lock(h, &*b, kept)?.try_acquire()).await??;
        ensure!(busy.is_none(), "{kept} was granted although the set holds it");
    }
    let released = soon("release", held.release()).await?;
    ensure!(matches!(released, Err(Error::Lost { .. })), "a release after the loss: {released:?}");
    nothing_left(h).await
}

/// The tokens of the holders, or none if a name has no holder.
async fn tokens(
    client: &dyn Client,
    names: &[LockName],
) -> Result<Option<Vec<Option<FencingToken>>>, Failure> {
    let mut tokens = Vec::new();
    for name in names {
        match queue(client, name).await?.as_slice() {
            [] => return Ok(None),
            [entry] => tokens.push(entry.holder.token),
            more => return Err(format!("{name} is held by one set, and shown as {more:?}").into()),
        }
    }
    Ok(Some(tokens))
}

async fn all_are_taken(client: &dyn Client, names: &[LockName]) -> Done {
    until(|| async { Ok(tokens(client, names).await?.is_some()) }).await
}

/// A set of each kind is taken once, by the first request.
async fn a_lost_answer_to_a_set(h: &dyn Harness) -> Done {
    let (names, a, b) = (names(), h.client().await?, h.client().await?);
    let [x, y, z] = &names;
    let mut sets = vec![set(h, a.locks(), &[x, y, z])?];
    if has_kind(&*a, LockKind::Shared) {
        sets.push(sets[0].clone().shared()?);
        sets.push(set(h, a.locks(), &[x, y])?.and_shared([z])?);
    }
    for set in sets {
        let set = set.ttl(long(h, &*a));
        // The server may have to load a script first.
        soon("a set", set.acquire()).await??.release().await?;
        let asked = unanswered(&*a, set.try_acquire(), all_are_taken(&*b, &names)).await?;
        let before = tokens(&*b, &names).await?;
        a.lose_replies().await?;
        let granted = promised("the set whose answer was lost", asked).await??;
        if is_in_doubt(&*b, &granted) {
            nothing_left(h).await?;
            continue;
        }
        let held = granted?.ok_or("a set that was sent again found its own locks busy")?;
        keeps!(held.is_valid(), "granted, and not held: {held:?}");
        let now = tokens(&*b, &names).await?.ok_or("the names of a set are free")?;
        let same = now.iter().zip(held.tokens()).all(|(shown, (_, token))| {
            // A store need not show it.
            shown.is_none_or(|shown| shown == token)
        });
        ensure!(same, "{held:?} is shown with {now:?}");
        let once = before.is_none_or(|before| before == now) || !shows_waiters(&*b);
        ensure!(once, "a set was taken twice: other tokens than {now:?} before");
        soon("release", held.release()).await??;
        nothing_left(h).await?;
    }
    Ok(())
}

/// All names are free again, long before an expiry; also if one of them was revoked meanwhile.
async fn a_set_of_a_caller_that_left(h: &dyn Harness) -> Done {
    let (names, a, b) = (names(), h.client().await?, h.client().await?);
    let set = set(h, a.locks(), &names.each_ref())?.ttl(long(h, &*a));
    soon("a set", set.acquire()).await??.release().await?;
    let asked = unanswered(&*a, set.acquire(), all_are_taken(&*b, &names)).await?;
    asked.abort();
    a.lose_replies().await?;
    nothing_left(h).await?;
    let asked = unanswered(&*a, set.try_acquire(), all_are_taken(&*b, &names)).await?;
    let queue = queue(&*b, &names[2]).await?;
    if let Some(attempt) = queue.first().and_then(|entry| entry.attempt) {
        soon("revoke", b.locks().revoke(&names[2], attempt)).await??;
    }
    a.lose_replies().await?;
    match promised("the answer to an incomplete set", asked).await?? {
        in_doubt if is_in_doubt(&*b, &in_doubt) => {}
        Ok(None) | Err(Error::PlaceLost { .. } | Error::Lost { .. }) => {}
        // The revoked one was free, and taken again. Or its loss is not known here yet.
        Ok(Some(held)) => drop(soon("release", held.release()).await?),
        Err(error) => return Err(error.into()),
    }
    nothing_left(h).await
}

/// Two of them, and a single reader, hold the same names.
async fn shared_sets_are_held_together(h: &dyn Harness) -> Done {
    let (names, a, b) = (names(), h.client().await?, h.client().await?);
    needs_kind(&*a, LockKind::Shared)?;
    let [x, y, z] = &names;
    let single = acquire_as(h, &*a, y, Shared).await?;
    let first = set(h, a.locks(), &[x, y, z])?.shared()?;
    let first = soon("acquire", first.acquire()).await??;
    let second = set(h, b.locks(), &[z, y])?.shared()?;
    let second = soon("try_acquire", second.try_acquire()).await??;
    let second = second.ok_or("readers of the same names kept a shared set out")?;
    let all = [first.is_valid(), second.is_valid(), single.is_valid()];
    keeps!(all == [true; 3], "of the readers these hold their locks: {all:?}");
    for name in &names {
        ensure!(is_free(h, &*b, name, Shared).await?, "a set of readers keeps out one of {name}");
        ensure!(!is_free(h, &*b, name, Exclusive).await?, "{name} was written beside its readers");
    }
    soon("release", single.release()).await??;
    soon("release", first.release()).await??;
    ensure!(is_free(h, &*a, x, Exclusive).await?, "{x} stays taken by a set that was released");
    ensure!(!is_free(h, &*a, y, Exclusive).await?, "{y} was written beside the second set");
    soon("release", second.release()).await??;
    nothing_left(h).await
}

async fn a_shared_set_and_a_writer(h: &dyn Harness) -> Done {
    let (names, a, b) = (names(), h.client().await?, h.client().await?);
    needs_kind(&*a, LockKind::Shared)?;
    let shared = set(h, b.locks(), &names.each_ref())?.shared()?;
    let exclusive = set(h, b.locks(), &names.each_ref())?;
    refused_as_a_whole(h, &shared, &*a, &names, Exclusive).await?;
    refused_as_a_whole(h, &exclusive, &*a, &names, Shared).await?;
    nothing_left(h).await
}

/// Each name is locked as its kind says, and a name that is given as both is exclusive.
async fn a_set_of_both_kinds(h: &dyn Harness) -> Done {
    let (names, a, b) = (names(), h.client().await?, h.client().await?);
    needs_kind(&*a, LockKind::Shared)?;
    let [x, y, z] = &names;
    let both = set(h, a.locks(), &[y, x])?.and_shared([z, x])?;
    let beside = acquire_as(h, &*b, z, Shared).await?;
    for how in ["acquire", "try_acquire"] {
        let held = match how {
            "acquire" => soon(how, both.acquire()).await??,
            _ => soon(how, both.try_acquire()).await??.ok_or("a free set was not taken")?,
        };
        ensure!(held.tokens().map(|(name, _)| name).eq(&names), "the set holds {held:?}");
        for (name, shared) in names.iter().zip([false, false, true]) {
            let beside = is_free(h, &*b, name, Shared).await?;
            ensure!(beside == shared, "beside the set {name} was granted to a reader: {beside}");
            ensure!(!is_free(h, &*b, name, Exclusive).await?, "{name} was written beside the set");
        }
        soon("release", held.release()).await??;
    }
    soon("release", beside.release()).await??;
    nothing_left(h).await
}

/// It gets its names when the writer leaves, and the next writer gets them when it is dropped.
async fn a_shared_set_waits_for_a_writer(h: &dyn Harness) -> Done {
    let (names, a, b) = (names(), h.client().await?, h.client().await?);
    needs_kind(&*a, LockKind::Shared)?;
    let [x, y, z] = &names;
    let first = acquire_as(h, &*a, y, Exclusive).await?;
    let waiting = tokio::spawn(set(h, b.locks(), &[x, y, z])?.shared()?.acquire());
    wait_for_queue(&*a, y, 2).await?;
    ensure!(!waiting.is_finished(), "a shared set was granted beside a writer of {y}");
    soon("release", first.release()).await??;
    let held = promised("the shared set", waiting).await???;
    keeps!(held.is_valid(), "the set was granted and is not held: {held:?}");
    let next = tokio::spawn(lock_as(h, &*a, y, Exclusive)?.acquire());
    wait_for_queue(&*a, y, 2).await?;
    ensure!(!next.is_finished(), "{y} was granted to a writer beside its readers");
    drop(held);
    promised("the next writer", next).await???.release().await?;
    nothing_left(h).await
}
