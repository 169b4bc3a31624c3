//! Work that is done once per period, by virtual time. The property `once` has the store's part.

use std::{
    sync::{
        Arc,
        atomic::{AtomicU32, Ordering},
    },
    time::Duration,
};

use lock_core::{Clock, Error, FencingToken, Held, LossReason, Once, blocking};
use lock_memory::MemoryStore;
use tokio::sync::oneshot;

use crate::clients::{client, locks};

const TTL: Duration = Duration::from_secs(2);
const PERIOD: Duration = Duration::from_secs(3600);

#[tokio::test(start_paused = true)]
async fn of_many_runs_one_does_the_work() {
    let (store, works) = (MemoryStore::new(), Arc::new(AtomicU32::new(0)));
    let runs: Vec<_> = (0..8)
        .map(|_| {
            let (once, works) = (locks(&store).lock("a").unwrap().once_per(PERIOD), works.clone());
            tokio::spawn(once.run(|_| async move {
                works.fetch_add(1, Ordering::SeqCst);
                Ok::<_, Error>(())
            }))
        })
        .collect();
    let mut done = 0;
    for run in runs {
        match run.await.unwrap().unwrap() {
            Once::Done(()) => done += 1,
            Once::AlreadyDone(mark) => assert!(mark.ends_at > mark.done_at),
            Once::Unmarked((), error) => panic!("{error}"),
        }
    }
    assert_eq!((done, works.load(Ordering::SeqCst)), (1, 1));
    assert!(store.contents().is_empty(), "a mark is no entry");
}

#[tokio::test(start_paused = true)]
async fn a_raise_of_the_floor_leaves_marks() {
    let locks = locks(&MemoryStore::new());
    let guard = locks.lock("a").unwrap().acquire().await.unwrap();
    guard.mark_done(PERIOD).await.unwrap();
    let mark = guard.mark().await.unwrap();
    locks.raise_token_floor(FencingToken::new(1000)).await.unwrap();
    guard.lost().await;
    assert_eq!(locks.mark("a").await.unwrap(), mark);
}

/// Not released: a late mark would be written for a lock that another client holds by then.
#[tokio::test(start_paused = true)]
async fn a_lock_whose_mark_is_not_confirmed_expires() {
    let store = MemoryStore::new();
    let ((here, faults), there) = (client(&store), locks(&store));
    let began = Clock::Tokio.now();
    let once = here.lock("a").unwrap().ttl(TTL).once_per(PERIOD);
    let ran = once.run(|_| async move {
        faults.partition();
        Ok::<_, Error>(7)
    });
    let ran = ran.await;
    let Ok(Once::Unmarked(7, Error::Lost { reason: LossReason::Expired, .. })) = ran else {
        panic!("it came to {ran:?}")
    };
    let next = there.lock("a").unwrap().acquire().await.unwrap();
    assert!(Clock::Tokio.now().since(began) >= TTL);
    assert!(next.mark().await.unwrap().is_none());
}

#[tokio::test(start_paused = true)]
async fn a_run_that_is_dropped_after_its_work_is_marked_all_the_same() {
    let store = MemoryStore::new();
    let (here, faults) = client(&store);
    let (tell, told) = oneshot::channel();
    let once = here.lock("a").unwrap().ttl(TTL).once_per(PERIOD);
    let mut run = Box::pin(once.run(|_| async move {
        faults.delay(TTL / 20);
        tell.send(()).unwrap();
        Ok::<_, Error>(())
    }));
    tokio::select! {
        ran = &mut run => panic!("answered at once: {ran:?}"),
        told = told => told.unwrap(),
    }
    drop(run);
    let next = locks(&store).lock("a").unwrap().acquire().await.unwrap();
    assert!(next.mark().await.unwrap().is_some(), "the lock was released before the mark");
}

/// It counts for a run that works.
#[tokio::test(start_paused = true)]
async fn a_run_that_finds_a_mark_skips_the_minimum_hold_time() {
    let store = MemoryStore::new();
    let (here, there) = (locks(&store), locks(&store));
    let (least, now) = (Duration::from_secs(60), || Clock::Tokio.now());
    let once = there.lock("a").unwrap().at_least(least).once_per(PERIOD);
    let guard = here.lock("a").unwrap().acquire().await.unwrap();
    let run = tokio::spawn(once.run(never));
    while here.inspect("a").await.unwrap().len() < 2 {
        tokio::time::sleep(Duration::from_millis(1)).await;
    }
    guard.mark_done(PERIOD).await.unwrap();
    guard.release().await.unwrap();
    let released = now();
    let ran = run.await.unwrap();
    assert!(matches!(ran, Ok(Once::AlreadyDone(_))), "{ran:?}");
    assert!(now().since(released) < TTL);
    assert!(there.clear_mark("a").await.unwrap());
    let began = now();
    let ran = once.run(|_| async { Ok::<_, Error>(()) }).await;
    assert!(matches!(ran, Ok(Once::Done(()))), "{ran:?}");
    assert!(now().since(began) >= least);
}

async fn never(_: Held) -> Result<(), Error> {
    panic!("it works")
}

/// One second for the look at the mark, another one for the holder's name.
#[tokio::test(start_paused = true)]
async fn a_limited_wait_ends_while_the_store_is_silent() {
    let (here, faults) = client(&MemoryStore::new());
    faults.partition();
    let (began, wait) = (Clock::Tokio.now(), Duration::from_secs(2));
    let refused = here.lock("a").unwrap().wait(wait).once_per(PERIOD).run(never).await;
    assert!(refused.is_err(), "{refused:?}");
    let waited = Clock::Tokio.now().since(began);
    assert!(waited < wait + Duration::from_millis(2500), "{waited:?}");
}

#[tokio::test(start_paused = true)]
async fn periods_and_locks_without_marks_are_refused_before_the_work() {
    let locks = locks(&MemoryStore::new());
    for period in [Duration::ZERO, Duration::MAX] {
        let once = locks.lock("a").unwrap().once_per(period);
        let refused = once.run(never).await.unwrap_err();
        let Error::InvalidOption { option, .. } = &refused else { panic!("{refused}") };
        assert_eq!(option, "once_per");
    }
    let shared = locks.shared("a").unwrap();
    let refused = shared.once_per(PERIOD).run(never).await.unwrap_err();
    assert!(matches!(refused, Error::Unsupported { .. }), "{refused}");
    let guard = shared.acquire().await.unwrap();
    let refused = guard.mark_done(PERIOD).await.unwrap_err();
    assert!(matches!(refused, Error::Unsupported { .. }), "{refused}");
}

#[test]
fn a_blocking_program_looks_and_marks_by_hand() {
    let store = MemoryStore::new();
    let locks = blocking::Locks::new(|| store.client()).unwrap();
    let guard = locks.lock("a").unwrap().acquire().unwrap();
    assert_eq!(guard.mark().unwrap(), None);
    guard.mark_done(PERIOD).unwrap();
    let mark = guard.mark().unwrap().unwrap();
    assert_eq!(mark.token, guard.token());
    guard.release().unwrap();
    assert_eq!(locks.mark("a").unwrap(), Some(mark));
    assert_eq!(locks.marks("").unwrap().len(), 1);
    assert!(locks.clear_mark("a").unwrap() && !locks.clear_mark("a").unwrap());
}
