//! Work that stops when its lock is lost: a set, permits, a leadership, again and again.

use std::{
    ops::ControlFlow,
    sync::{
        Arc,
        atomic::{AtomicU32, Ordering},
    },
    time::Duration,
};

use lock_core::{Clock, Election, Error, Held, Leading, Locks, LossReason};
use lock_memory::MemoryStore;

use crate::clients::{locks, name};

const TTL: Duration = Duration::from_secs(4);

/// A program's own error, with the conversion that `?` needs.
#[derive(Debug)]
enum Own {
    Lock(Error),
    Job(&'static str),
}

impl From<Error> for Own {
    fn from(error: Error) -> Self {
        Self::Lock(error)
    }
}

fn election(locks: &Locks) -> Election {
    locks.election("job").unwrap().ttl(TTL)
}

/// Counts its drops.
struct Dropped(Arc<AtomicU32>);

impl Drop for Dropped {
    fn drop(&mut self) {
        self.0.fetch_add(1, Ordering::SeqCst);
    }
}

/// What the work owns: it is dropped while the lock is held.
struct Owned(Held);

impl Drop for Owned {
    fn drop(&mut self) {
        assert!(self.0.is_valid(), "the release came first");
    }
}

#[tokio::test(start_paused = true)]
async fn a_set_is_held_while_the_work_runs_and_released_after_it() {
    let store = MemoryStore::new();
    let set = locks(&store).all(["b", "a"]).unwrap();
    let (seen, tokens) = (store.clone(), set.clone());
    let held = tokens.run(|held| async move {
        assert_eq!(seen.contents().len(), 2);
        assert!(held.is_valid() && held.get("a").is_some() && held.get("c").is_none());
        held.tokens().map(|(name, _)| name.to_string()).collect::<Vec<_>>()
    });
    assert_eq!(held.await.unwrap(), ["a", "b"]);
    assert!(store.contents().is_empty());
}

#[tokio::test(start_paused = true)]
async fn the_loss_of_one_name_ends_the_work_of_a_set() {
    let (store, ended) = (MemoryStore::new(), Arc::new(AtomicU32::new(0)));
    let dropped = Dropped(ended.clone());
    let victim = store.clone();
    let ran = locks(&store).all(["a", "b"]).unwrap().ttl(TTL).run(|_| async move {
        let _dropped = dropped;
        victim.delete(&name("b"));
        std::future::pending::<()>().await
    });
    let Err(Error::Lost { name, reason }) = ran.await else { panic!("it was lost") };
    assert_eq!((name.as_str(), reason), ("b", LossReason::EntryGone));
    assert_eq!(ended.load(Ordering::SeqCst), 1);
}

/// A service answers whether it has the lock, and then works.
#[tokio::test(start_paused = true)]
async fn work_runs_under_a_guard_and_ends_like_that_of_a_lock() {
    let (store, ended) = (MemoryStore::new(), Arc::new(AtomicU32::new(0)));
    let lock = locks(&store).lock("a").unwrap().ttl(TTL);
    let guard = lock.try_acquire().await.unwrap().unwrap();
    let (token, seen) = (guard.token(), store.clone());
    let work = tokio::spawn(
        guard.run(|held| async move { (held.token(), seen.contents().len(), held.is_valid()) }),
    );
    assert_eq!(work.await.unwrap().unwrap(), (token, 1, true));
    assert!(store.contents().is_empty(), "it is released");

    let (guard, dropped) = (lock.acquire().await.unwrap(), Dropped(ended.clone()));
    let victim = store.clone();
    let lost = guard.run(|_| async move {
        let _dropped = dropped;
        victim.delete(&name("a"));
        std::future::pending::<()>().await
    });
    assert!(matches!(lost.await, Err(Error::Lost { reason: LossReason::EntryGone, .. })));
    assert_eq!(ended.load(Ordering::SeqCst), 1);

    // The future of a guard that is dropped gives the lock back, also if it was never polled.
    let guard = lock.acquire().await.unwrap();
    let owned = Owned(guard.held());
    drop(guard.run(|_| async move { drop(owned) }));
    lock.acquire().await.unwrap().release().await.unwrap();
}

#[tokio::test(start_paused = true)]
async fn one_question_mark_is_enough() {
    async fn job(locks: &Locks, fails: bool) -> Result<u32, Own> {
        let work = move || async move { if fails { Err(Own::Job("no paper")) } else { Ok(1) } };
        let one = locks.lock("a")?.run_fallible(|_| work()).await?;
        let two = locks.semaphore("b", 2)?.run_fallible(|_| work()).await?;
        let three = locks.all(["c", "d"])?.run_fallible(|_| work()).await?;
        Ok(one + two + three + election(locks).run_fallible("me", |_| work()).await?)
    }
    let store = MemoryStore::new();
    let locks = locks(&store);
    assert_eq!(job(&locks, false).await.unwrap(), 4);
    assert!(matches!(job(&locks, true).await, Err(Own::Job("no paper"))));
    let taken = locks.lock("a").unwrap().acquire().await.unwrap();
    let vain =
        locks.lock("a").unwrap().wait(Duration::ZERO).run_fallible(|_| async { Ok(()) }).await;
    assert!(matches!(vain, Err(Own::Lock(Error::WaitTimeout { .. }))), "{vain:?}");
    taken.release().await.unwrap();
}

#[tokio::test(start_paused = true)]
async fn several_permits_are_held_while_the_work_runs() {
    let store = MemoryStore::new();
    let pool = locks(&store).semaphore("pool", 3).unwrap();
    let others = pool.clone();
    let room = pool.run_many(2, |_| async move {
        let one = others.try_acquire().await.unwrap();
        let two = others.try_acquire().await.unwrap();
        (one.is_some(), two.is_some())
    });
    assert_eq!(room.await.unwrap(), (true, false));
    assert!(matches!(pool.run_many(4, |_| async {}).await, Err(Error::InvalidOption { .. })));
}

#[tokio::test(start_paused = true)]
async fn a_leader_works_publishes_and_resigns() {
    let store = MemoryStore::new();
    let locks = locks(&store);
    let election = election(&locks);
    let said = election.run("first", |leading| {
        let election = election.clone();
        async move {
            let first = election.leader().await.unwrap().unwrap();
            assert_eq!(first.token, leading.token());
            leading.proclaim("second").await.unwrap();
            let second = election.leader().await.unwrap().unwrap();
            [first.value, second.value]
        }
    });
    assert_eq!(said.await.unwrap(), [b"first".to_vec(), b"second".to_vec()]);
    assert_eq!(election.leader().await.unwrap(), None);
}

#[tokio::test(start_paused = true)]
async fn a_leader_that_continues_campaigns_again_behind_the_others() {
    let store = MemoryStore::new();
    let (here, there) = (locks(&store), locks(&store));
    let runs = AtomicU32::new(0);
    let mine = election(&here);
    let (runs, waiting) = (&runs, election(&there));
    let done = mine.keep_running("me", async |leading: Leading| {
        Ok::<_, Own>(match runs.fetch_add(1, Ordering::SeqCst) {
            // The other candidate is in line when this one resigns.
            0 => {
                let other = tokio::spawn(waiting.campaign("other"));
                while here.inspect("job").await?.len() < 2 {
                    tokio::task::yield_now().await;
                }
                tokio::spawn(async move { other.await.unwrap()?.resign().await });
                ControlFlow::Continue(())
            }
            _ => ControlFlow::Break(leading.token()),
        })
    });
    let last = done.await.unwrap();
    assert_eq!(runs.load(Ordering::SeqCst), 2);
    // One for the first try, one for the other candidate, one for the second try.
    assert_eq!(last.value(), 3);
}

#[tokio::test(start_paused = true)]
async fn after_a_loss_it_campaigns_again_and_after_failed_work_it_does_not() {
    let store = MemoryStore::new();
    let (locks, ended) = (locks(&store), Arc::new(AtomicU32::new(0)));
    let runs = &AtomicU32::new(0);
    let (election, ended) = (election(&locks), &ended);
    let failed = election.keep_running("me", async |_: Leading| -> Result<ControlFlow<()>, Own> {
        let _dropped = Dropped(ended.clone());
        match runs.fetch_add(1, Ordering::SeqCst) {
            0 => {
                store.delete(&name("job"));
                std::future::pending().await
            }
            _ => Err(Own::Job("no paper")),
        }
    });
    assert!(matches!(failed.await, Err(Own::Job("no paper"))));
    assert_eq!((runs.load(Ordering::SeqCst), ended.load(Ordering::SeqCst)), (2, 2));
    assert!(store.contents().is_empty(), "it has resigned");
}

#[tokio::test(start_paused = true)]
async fn a_permanent_error_ends_it() {
    let locks = locks(&MemoryStore::new());
    let (election, own) = (election(&locks), &locks);
    let ended = election.keep_running("me", async |_: Leading| -> Result<ControlFlow<()>, Own> {
        own.close().await?;
        Ok(ControlFlow::Continue(()))
    });
    assert!(matches!(ended.await, Err(Own::Lock(Error::Closed { .. }))));
}

/// The caller's value may be dropped before the campaign is polled.
#[tokio::test(start_paused = true)]
async fn a_campaign_borrows_nothing() {
    let locks = locks(&MemoryStore::new());
    let (campaign, vain) = {
        let value = String::from("10.0.0.7");
        let election = election(&locks);
        (tokio::spawn(election.campaign(&value)), election.try_campaign(value.as_bytes()))
    };
    let leading = campaign.await.unwrap().unwrap();
    assert!(vain.await.unwrap().is_none());
    assert_eq!(leading.held().token(), leading.token());
    assert_eq!(election(&locks).leader().await.unwrap().unwrap().value, b"10.0.0.7");
}

#[tokio::test(start_paused = true)]
async fn a_candidate_that_pauses_is_told_of_a_drain_at_once() {
    let store = MemoryStore::new();
    let locks = locks(&store);
    let election = election(&locks);
    // Each leadership is lost at once: the pauses grow to between 5 s and 10 s, and no other time passes.
    let led = election.keep_running("me", async |_: Leading| -> Result<ControlFlow<()>, Own> {
        store.delete(&name("job"));
        std::future::pending().await
    });
    let drain = async {
        tokio::time::sleep(Duration::from_secs(200)).await;
        let began = Clock::Tokio.now();
        locks.drain(Duration::ZERO).await.unwrap();
        began
    };
    let (led, began) = tokio::join!(led, drain);
    assert!(matches!(led, Err(Own::Lock(Error::Closed { .. }))));
    let took = Clock::Tokio.now().since(began);
    assert!(took < Duration::from_millis(100), "{took:?}");
}
