//! A least time to hold a lock, by virtual time.

use std::{pin::pin, sync::Arc, time::Duration};

use lock_core::{Clock, Error, Instant, Lock, LockName, Locks, LossReason, Owner};
use lock_memory::MemoryStore;

use crate::clients::{locks, poll_once};

const TTL: Duration = Duration::from_secs(2);
/// As long as many renewals.
const LEAST: Duration = Duration::from_secs(30);
const MOMENT: Duration = Duration::from_secs(1);

fn lock(locks: &Locks) -> Lock {
    locks.lock("a").unwrap().ttl(TTL).at_least(LEAST)
}

fn now() -> Instant {
    Clock::Tokio.now()
}

/// Returns the names that have a holder or a waiter.
fn held(store: &MemoryStore) -> Vec<String> {
    store.contents().into_iter().map(|(name, _)| name.to_string()).collect()
}

#[tokio::test(start_paused = true)]
async fn a_dropped_guard_keeps_its_lock_in_the_background() {
    let store = MemoryStore::new();
    let (here, there) = (locks(&store), locks(&store));
    let (asked, guard) = (now(), lock(&here).acquire().await.unwrap());
    let look = guard.held();
    drop(guard);
    assert!(look.is_valid(), "nobody else has it");
    let next = there.lock("a").unwrap().acquire().await.unwrap();
    let kept = now().since(asked);
    assert!((LEAST..LEAST + MOMENT).contains(&kept), "{kept:?}");
    assert!(next.token() > look.token() && !look.is_valid());
}

#[tokio::test(start_paused = true)]
async fn a_release_waits_for_the_time_that_is_left() {
    let store = MemoryStore::new();
    for (work, expected) in [(Duration::ZERO, LEAST), (LEAST / 3, LEAST), (LEAST * 2, LEAST * 2)] {
        let (asked, guard) = (now(), lock(&locks(&store)).acquire().await.unwrap());
        tokio::time::sleep(work).await;
        guard.release().await.unwrap();
        let kept = now().since(asked);
        assert!((expected..expected + MOMENT).contains(&kept), "{kept:?} for {work:?}");
        assert_eq!(held(&store), [""; 0]);
    }
}

#[tokio::test(start_paused = true)]
async fn a_release_that_is_dropped_goes_on() {
    let store = MemoryStore::new();
    let locks = locks(&store);
    let release = lock(&locks).acquire().await.unwrap().release();
    assert!(tokio::time::timeout(TTL, release).await.is_err());
    tokio::time::sleep(LEAST - TTL - MOMENT).await;
    assert_eq!(held(&store), ["a"]);
    tokio::time::sleep(MOMENT * 2).await;
    assert_eq!(held(&store), [""; 0]);
}

#[tokio::test(start_paused = true)]
async fn a_loss_meanwhile_is_reported_at_once() {
    let store = MemoryStore::new();
    let (asked, locks) = (now(), locks(&store));
    let release = tokio::spawn(lock(&locks).acquire().await.unwrap().release());
    tokio::time::sleep(TTL).await;
    store.delete(&LockName::new("a").unwrap());
    let lost = release.await.unwrap();
    assert!(matches!(lost, Err(Error::Lost { reason: LossReason::EntryGone, .. })), "{lost:?}");
    assert!(now().since(asked) < LEAST);
    let next = locks.lock("a").unwrap().acquire().await.unwrap();
    tokio::time::sleep(LEAST).await;
    assert!(next.is_valid(), "the end of the least time released another's lock");
}

#[tokio::test(start_paused = true)]
async fn work_is_done_and_its_lock_kept() {
    let store = MemoryStore::new();
    let (asked, locks) = (now(), locks(&store));
    assert_eq!(lock(&locks).run(|_| async { 7 }).await.unwrap(), 7);
    assert!(now().since(asked) >= LEAST);
}

#[tokio::test(start_paused = true)]
async fn a_close_gives_it_back_at_once() {
    let store = MemoryStore::new();
    let (asked, locks) = (now(), locks(&store));
    let release = tokio::spawn(lock(&locks).acquire().await.unwrap().release());
    tokio::task::yield_now().await;
    locks.close().await.unwrap();
    let lost = release.await.unwrap();
    assert!(matches!(lost, Err(Error::Lost { reason: LossReason::Closed, .. })), "{lost:?}");
    assert_eq!(held(&store), [""; 0]);
    assert!(now().since(asked) < MOMENT);
}

#[tokio::test(start_paused = true)]
async fn a_grant_without_a_guard_is_given_back_at_once() {
    let store = MemoryStore::new();
    let (here, there) = (locks(&store), locks(&store));
    // A grant of a caller that has left, and one that is not collected.
    for leaves in [true, false] {
        let holder = there.lock("a").unwrap().ttl(TTL).acquire().await.unwrap();
        let mut waiting = Some(Box::pin(lock(&here).acquire()));
        assert!(poll_once(waiting.as_mut().unwrap()).await.is_pending());
        tokio::time::sleep(MOMENT).await;
        holder.release().await.unwrap();
        tokio::time::sleep(TTL / 4).await;
        assert_eq!(held(&store), ["a"]);
        if leaves {
            waiting = None;
        }
        tokio::time::sleep(TTL).await;
        assert_eq!(held(&store), [""; 0], "leaves: {leaves}");
        drop(waiting);
    }
    // A set with one lock that is taken.
    let holder = there.lock("b").unwrap().acquire().await.unwrap();
    let set = here.all(["a", "b"]).unwrap().at_least(LEAST);
    assert!(set.try_acquire().await.unwrap().is_none());
    let mut waiting = pin!(set.wait(TTL).acquire());
    assert!(poll_once(&mut waiting).await.is_pending());
    assert!(waiting.await.is_err());
    tokio::time::sleep(MOMENT).await;
    assert_eq!(held(&store), ["b"]);
    drop(holder);
}

#[tokio::test(start_paused = true)]
async fn a_set_is_kept_from_its_last_grant_on() {
    let store = MemoryStore::new();
    let (here, there) = (locks(&store), locks(&store));
    let holder = there.lock("b").unwrap().acquire().await.unwrap();
    let set = tokio::spawn(here.all(["a", "b"]).unwrap().ttl(TTL).at_least(LEAST).acquire());
    tokio::time::sleep(LEAST).await;
    let asked = now();
    holder.release().await.unwrap();
    drop(set.await.unwrap().unwrap());
    tokio::time::sleep(LEAST - MOMENT).await;
    assert_eq!(held(&store), ["a", "b"]);
    let _both = there.all(["a", "b"]).unwrap().acquire().await.unwrap();
    assert!(now().since(asked) >= LEAST);
}

#[tokio::test(start_paused = true)]
async fn an_owner_waits_for_a_lock_that_it_gave_back() {
    let (asked, locks) = (now(), locks(&MemoryStore::new()));
    let lock = lock(&locks).owner(&Owner::new());
    let (first, second) = (lock.acquire().await.unwrap(), lock.acquire().await.unwrap());
    let token = first.token();
    first.release().await.unwrap();
    assert!(now().since(asked) < MOMENT, "the first of two guards waits for nothing");
    drop(second);
    let third = lock.acquire().await.unwrap();
    assert!(third.token() > token && now().since(asked) >= LEAST);
}

#[tokio::test(start_paused = true)]
async fn many_are_kept_without_a_task() {
    let store = MemoryStore::new();
    let locks = locks(&store);
    let mut guards = Vec::new();
    for n in 0..1000 {
        let lock = locks.lock(format!("many-{n}")).unwrap().ttl(TTL).at_least(LEAST);
        guards.push(lock.acquire().await.unwrap());
    }
    let tasks = || tokio::runtime::Handle::current().metrics().num_alive_tasks();
    let before = tasks();
    guards.clear();
    tokio::time::sleep(LEAST / 2).await;
    assert_eq!((tasks() - before, held(&store).len()), (0, 1000));
    tokio::time::sleep(LEAST).await;
    assert_eq!((tasks() - before, held(&store).len()), (0, 0));
}

#[tokio::test(start_paused = true)]
async fn a_time_that_cannot_be_kept_is_refused() {
    let locks = locks(&MemoryStore::new());
    let margin = TTL / 20;
    let lock = locks.lock("a").unwrap().ttl(TTL);
    for (lock, most) in [
        (lock.clone().max_hold(LEAST), LEAST - margin),
        (lock.clone().fixed_term(), TTL - margin * 2),
        (lock.fixed_term().max_hold(TTL / 2), TTL / 2 - margin),
    ] {
        lock.clone().at_least(most).acquire().await.unwrap().release().await.unwrap();
        let refused = lock.at_least(most + Duration::from_millis(1)).try_acquire().await;
        let refused = refused.unwrap_err().to_string();
        assert!(
            refused.contains("at_least") && refused.contains(&format!("{most:?}")),
            "{refused}"
        );
    }
}

/// The connection's runtime ends: nothing keeps the lock or the connection, and no caller waits for
/// their end.
#[test]
fn no_release_outlives_the_runtime_of_its_connection() {
    let runtime =
        || tokio::runtime::Builder::new_multi_thread().worker_threads(1).enable_all().build();
    let (theirs, here) = (runtime().unwrap(), runtime().unwrap());
    let (guard, connection) = theirs.block_on(async {
        let driver = Arc::new(MemoryStore::new().client());
        let connection = Arc::downgrade(&driver);
        (lock(&Locks::of(driver)).acquire().await.unwrap(), connection)
    });
    let mut release = Box::pin(guard.release());
    assert!(here.block_on(poll_once(&mut release)).is_pending());
    drop(theirs);
    let ended = here.block_on(release);
    assert!(matches!(ended, Err(Error::Closed { .. })), "{ended:?}");
    assert!(connection.upgrade().is_none(), "what was kept keeps the connection");
}
