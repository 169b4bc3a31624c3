//! Readers share, writers do not, and neither side starves. Claim C14 of the documents (symmetry of
//! the sides); curator's `InterProcessReadWriteLock`, where readers starve no waiter either; a
//! downgrade by "delete, then create" lets the next writer in (protocols 1b.1).

use std::sync::{
    Arc,
    atomic::{AtomicU64, Ordering},
};

use tokio::task::{JoinHandle, JoinSet};

use super::{Client, Done, Failure, Harness, ensure, keeps, property, scene::*};
use crate::{
    Kind::{self, Exclusive, Shared},
    LockGuard, LockKind, LockName, Locks, Result,
};

property!(
    readers_together,
    no_torn_reads,
    neither_side_starves,
    all_readers_in_a_row_enter,
    a_crashed_reader,
    downgrade_keeps_the_place,
    upgrade_only_alone,
    try_beside_readers,
);

type Waiter = JoinHandle<Result<LockGuard>>;

/// An attempt that waits in the queue once there are `length` entries in it.
async fn waiter(
    h: &dyn Harness,
    client: &dyn Client,
    name: &LockName,
    kind: Kind,
    length: usize,
) -> Result<Waiter, Failure> {
    let waiter = tokio::spawn(lock_as(h, client, name, kind)?.acquire());
    wait_for_queue(client, name, length).await?;
    Ok(waiter)
}

async fn granted(what: &str, waiter: Waiter) -> Result<LockGuard, Failure> {
    Ok(promised(what, waiter).await???)
}

async fn readers_together(h: &dyn Harness) -> Done {
    let (name, a, b) = (fresh("readers"), h.client().await?, h.client().await?);
    let (first, second) =
        (acquire_as(h, &*a, &name, Shared).await?, acquire_as(h, &*b, &name, Shared).await?);
    let third = acquire_as(h, &*b, &name, Shared).await?;
    keeps!(first.is_valid() && second.is_valid(), "a reader's arrival cost another one its lock");
    ensure!(
        first.token() < second.token() && second.token() < third.token(),
        "readers' tokens do not rise: {}, {}, {}",
        first.token(),
        second.token(),
        third.token()
    );
    let now = holders(&*a, &name).await?;
    ensure!(now == [Shared; 3], "the store shows the holders {now:?}, not 3 readers");
    for guard in [second, first, third] {
        soon("release", guard.release()).await??;
    }
    nothing_left(h).await
}

const ROUNDS: u64 = 12;

/// Writers change two numbers one after the other, with a round trip in between; readers must never
/// see them differ.
async fn no_torn_reads(h: &dyn Harness) -> Done {
    let name = fresh("torn");
    let state = Arc::new([AtomicU64::new(0), AtomicU64::new(0)]);
    let reads = Arc::new(AtomicU64::new(0));
    let mut workers = JoinSet::new();
    let mut clients = Vec::new();
    for n in 0..3 {
        let client = h.client().await?;
        needs_kind(&*client, LockKind::Shared)?;
        let locks = client.locks();
        workers.spawn(write_both(locks.clone(), name.clone(), state.clone()));
        for _ in 0..=n {
            workers.spawn(compare_both(locks.clone(), name.clone(), state.clone(), reads.clone()));
        }
        clients.push(client);
    }
    let rounds = || state[0].load(Ordering::SeqCst) + reads.load(Ordering::SeqCst);
    all_done("readers and writers", workers, rounds).await?;
    let written = state[0].load(Ordering::SeqCst);
    ensure!(written == 3 * ROUNDS, "{} writes under the lock counted only {written}", 3 * ROUNDS);
    nothing_left(h).await
}

async fn write_both(locks: Locks, name: LockName, state: Arc<[AtomicU64; 2]>) -> Done {
    for _ in 0..ROUNDS {
        let guard = locks.lock(&name)?.acquire().await?;
        let next = state[0].load(Ordering::SeqCst) + 1;
        state[0].store(next, Ordering::SeqCst);
        locks.inspect(&name).await?;
        state[1].store(next, Ordering::SeqCst);
        guard.release().await?;
    }
    Ok(())
}

async fn compare_both(
    locks: Locks,
    name: LockName,
    state: Arc<[AtomicU64; 2]>,
    reads: Arc<AtomicU64>,
) -> Done {
    for _ in 0..ROUNDS {
        let guard = locks.shared(&name)?.acquire().await?;
        let first = state[0].load(Ordering::SeqCst);
        locks.inspect(&name).await?;
        let second = state[1].load(Ordering::SeqCst);
        ensure!(first == second, "a reader saw {first} and then {second}: a writer was at work");
        reads.fetch_add(1, Ordering::SeqCst);
        guard.release().await?;
    }
    Ok(())
}

/// A reader, a writer, a reader, a writer: each waits for the one before it, though the first and
/// the third could share.
async fn neither_side_starves(h: &dyn Harness) -> Done {
    let (name, a, b) = (fresh("starve"), h.client().await?, h.client().await?);
    let first = acquire_as(h, &*a, &name, Shared).await?;
    let second = waiter(h, &*b, &name, Exclusive, 2).await?;
    let third = waiter(h, &*a, &name, Shared, 3).await?;
    let fourth = waiter(h, &*b, &name, Exclusive, 4).await?;
    let mut guard = first;
    for (kind, waiter) in [(Exclusive, second), (Shared, third), (Exclusive, fourth)] {
        let now = holders(&*b, &name).await?;
        ensure!(now == [guard.kind()], "{now:?} hold the lock beside or before their turn");
        soon("release", guard.release()).await??;
        guard = granted("the next in line", waiter).await?;
        ensure!(guard.kind() == kind, "the guard says {:?}, not {kind:?}", guard.kind());
    }
    soon("release", guard.release()).await??;
    nothing_left(h).await
}

/// One release lets in every reader right behind it, and the writer after them waits.
async fn all_readers_in_a_row_enter(h: &dyn Harness) -> Done {
    let (name, a, b) = (fresh("row"), h.client().await?, h.client().await?);
    needs_kind(&*a, LockKind::Shared)?;
    let first = acquire_as(h, &*a, &name, Exclusive).await?;
    let readers = [
        waiter(h, &*a, &name, Shared, 2).await?,
        waiter(h, &*b, &name, Shared, 3).await?,
        waiter(h, &*b, &name, Shared, 4).await?,
    ];
    let last = waiter(h, &*a, &name, Exclusive, 5).await?;
    soon("release", first.release()).await??;
    let mut guards = Vec::new();
    for waiter in readers {
        guards.push(granted("a reader in the row", waiter).await?);
    }
    let now = holders(&*b, &name).await?;
    ensure!(now == [Shared; 3], "{now:?} hold the lock, not the three readers");
    // In any order of releases, the writer waits for the last one.
    for guard in [guards.remove(1), guards.remove(0), guards.remove(0)] {
        ensure!(!last.is_finished(), "a writer entered beside a reader");
        soon("release", guard.release()).await??;
    }
    granted("the writer behind the readers", last).await?.release().await?;
    nothing_left(h).await
}

/// A reader that crashed blocks writers for its TTL and not longer, also if other readers live.
async fn a_crashed_reader(h: &dyn Harness) -> Done {
    let (name, a, b) = (fresh("crash"), h.client().await?, h.client().await?);
    let (dead, alive) =
        (acquire_as(h, &*a, &name, Shared).await?, acquire_as(h, &*b, &name, Shared).await?);
    let waiter = waiter(h, &*b, &name, Exclusive, 3).await?;
    a.crash().await?;
    soon("release", alive.release()).await??;
    let guard = within(expiry_limit(h, &*b), "a grant after a dead reader", waiter);
    guard.await???.release().await?;
    drop(dead);
    Ok(())
}

/// A downgraded writer keeps its place: readers right behind it enter, the writer behind them
/// waits.
async fn downgrade_keeps_the_place(h: &dyn Harness) -> Done {
    let (name, a, b) = (fresh("downgrade"), h.client().await?, h.client().await?);
    needs_kind(&*a, LockKind::Shared)?;
    let mut first = acquire_as(h, &*a, &name, Exclusive).await?;
    let second = waiter(h, &*b, &name, Shared, 2).await?;
    let third = waiter(h, &*a, &name, Shared, 3).await?;
    let last = waiter(h, &*b, &name, Exclusive, 4).await?;
    soon("downgrade", first.downgrade()).await??;
    let second = granted("the reader behind the downgraded writer", second).await?;
    let third = granted("the reader after it", third).await?;
    ensure!(first.is_valid() && first.kind() == Shared, "the downgraded lock is {first:?}");
    let now = holders(&*b, &name).await?;
    ensure!(now == [Shared; 3], "after a downgrade the holders are {now:?}");
    soon("downgrade again", first.downgrade()).await??;
    for guard in [first, third, second] {
        ensure!(!last.is_finished(), "a writer entered beside readers");
        soon("release", guard.release()).await??;
    }
    granted("the writer", last).await?.release().await?;
    downgraded_behind_a_writer(h, &*a, &*b).await?;
    nothing_left(h).await
}

/// The writer that waits right behind a downgraded one must not enter, nor must a reader behind it.
async fn downgraded_behind_a_writer(h: &dyn Harness, a: &dyn Client, b: &dyn Client) -> Done {
    let name = fresh("downgrade");
    let mut first = acquire_as(h, a, &name, Exclusive).await?;
    let second = waiter(h, b, &name, Exclusive, 2).await?;
    let third = waiter(h, b, &name, Shared, 3).await?;
    soon("downgrade", first.downgrade()).await??;
    // Later than anything that the downgrade may have started here.
    let busy = soon("try", b.locks().lock(&name)?.try_acquire()).await??;
    ensure!(busy.is_none(), "a lock that is held shared was free");
    ensure!(!second.is_finished() && !third.is_finished(), "somebody entered beside a reader");
    soon("release", first.release()).await??;
    granted("the writer", second).await?.release().await?;
    granted("the reader", third).await?.release().await?;
    Ok(())
}

/// A reader becomes the writer if it is alone, with a new token; two readers do not block each
/// other.
async fn upgrade_only_alone(h: &dyn Harness) -> Done {
    let (name, a, b) = (fresh("upgrade"), h.client().await?, h.client().await?);
    let (mut first, mut second) =
        (acquire_as(h, &*a, &name, Shared).await?, acquire_as(h, &*b, &name, Shared).await?);
    let (one, other) = tokio::join!(first.try_upgrade(), second.try_upgrade());
    let (one, other) = (one?, other?);
    ensure!(!one && !other, "two readers, and one became the writer: {one}, {other}");
    let before = second.token();
    soon("release", second.release()).await??;
    let behind = waiter(h, &*b, &name, Exclusive, 2).await?;
    ensure!(!soon("upgrade", first.try_upgrade()).await??, "a reader overtook a waiting writer");
    behind.abort();
    queue_becomes(&*b, &name, 1).await?;
    ensure!(soon("upgrade", first.try_upgrade()).await??, "a reader that is alone is not upgraded");
    ensure!(first.token() > before, "the upgrade's token {} is not new", first.token());
    let now = holders(&*b, &name).await?;
    ensure!(now == [Exclusive], "after an upgrade the holders are {now:?}");
    let beside = is_free(h, &*b, &name, Shared).await?;
    ensure!(!beside, "a reader entered beside an upgraded writer");
    let next = waiter(h, &*b, &name, Shared, 2).await?;
    soon("downgrade", first.downgrade()).await??;
    let next = granted("a reader behind a downgraded writer", next).await?;
    ensure!(next.token() > first.token(), "the next token does not rise");
    soon("release", first.release()).await??;
    soon("release", next.release()).await??;
    nothing_left(h).await
}

/// A try enters beside readers, and not beside or before a writer.
async fn try_beside_readers(h: &dyn Harness) -> Done {
    let (name, a, b) = (fresh("try"), h.client().await?, h.client().await?);
    let first = acquire_as(h, &*a, &name, Shared).await?;
    let beside = soon("try", b.locks().shared(&name)?.try_acquire()).await??;
    let beside = beside.ok_or("a reader was refused beside a reader")?;
    ensure!(!is_free(h, &*b, &name, Exclusive).await?, "a writer entered beside readers");
    soon("release", beside.release()).await??;
    let waiting = waiter(h, &*b, &name, Exclusive, 2).await?;
    let overtakes = is_free(h, &*a, &name, Shared).await?;
    ensure!(!overtakes, "a reader overtook a writer that waits");
    soon("release", first.release()).await??;
    let guard = granted("the writer", waiting).await?;
    ensure!(!is_free(h, &*a, &name, Shared).await?, "a reader entered beside a writer");
    soon("release", guard.release()).await??;
    nothing_left(h).await
}
