//! The promises to user code, under scripted faults and a virtual clock.

use std::{
    sync::{
        Arc,
        atomic::{AtomicU32, Ordering},
    },
    time::Duration,
};

use lock_core::{Error, Gate, LossReason};
use lock_memory::{Faults, MemoryStore};

use crate::clients::{client, name, poll_once};

const TTL: Duration = Duration::from_secs(4);

#[tokio::test(start_paused = true)]
async fn work_is_not_polled_again_after_a_pause_past_the_deadline() {
    let (locks, _) = client(&MemoryStore::new());
    let polls = Arc::new(AtomicU32::new(0));
    let seen = polls.clone();
    let work = locks.lock("a").unwrap().ttl(TTL).fixed_term().run(|_| async move {
        loop {
            seen.fetch_add(1, Ordering::SeqCst);
            tokio::task::yield_now().await;
        }
    });
    tokio::pin!(work);
    while polls.load(Ordering::SeqCst) < 3 {
        assert!(poll_once(&mut work).await.is_pending());
        tokio::task::yield_now().await;
    }
    let before = polls.load(Ordering::SeqCst);
    // Nothing runs while the clock jumps: a process that was stopped.
    tokio::time::advance(TTL * 2).await;
    let ended: Result<(), Error> = work.await;
    assert!(matches!(ended, Err(Error::Lost { .. })), "{ended:?}");
    assert_eq!(polls.load(Ordering::SeqCst), before);
}

#[tokio::test(start_paused = true)]
async fn a_guard_is_invalid_as_the_first_thing_after_a_pause() {
    let (locks, _) = client(&MemoryStore::new());
    let guard = locks.lock("a").unwrap().ttl(TTL).fixed_term().acquire().await.unwrap();
    assert!(guard.is_valid() && guard.remaining() > TTL / 2);
    tokio::time::advance(TTL).await;
    assert!(!guard.is_valid() && guard.remaining().is_zero());
}

#[tokio::test(start_paused = true)]
async fn every_fault_is_reported_with_its_reason() {
    let store = MemoryStore::new();
    let lost = async |fault: &dyn Fn(&Faults)| {
        let (locks, faults) = client(&store);
        let guard = locks.lock("a").unwrap().ttl(TTL).acquire().await.unwrap();
        fault(&faults);
        guard.lost().await
    };
    assert_eq!(lost(&|_| store.expire(&name("a"))).await, LossReason::EntryGone);
    assert_eq!(lost(&|_| store.delete(&name("a"))).await, LossReason::EntryGone);
    assert_eq!(lost(&|faults| faults.partition()).await, LossReason::Expired);
    assert_eq!(lost(&|faults| faults.cut_replies()).await, LossReason::Expired);
    assert_eq!(lost(&|faults| faults.pause_renewal()).await, LossReason::Expired);
}

#[tokio::test(start_paused = true)]
async fn a_paused_holder_writes_in_vain() {
    let store = MemoryStore::new();
    let (a, faults) = client(&store);
    let (b, _) = client(&store);
    let stock = Gate::new(10);
    assert_eq!(stock.newest(), None);
    let old = a.lock("a").unwrap().acquire().await.unwrap();
    faults.partition();
    store.expire(&name("a"));
    let new = b.lock("a").unwrap().acquire().await.unwrap();
    stock.enter(new.token(), |left| *left -= 1).unwrap();
    stock.enter(old.token(), |left| *left -= 1).unwrap_err();
    assert_eq!(stock.newest(), Some(new.token()));
    assert_eq!((stock.read(|left| *left), stock.into_inner()), (9, 9));
}

#[tokio::test(start_paused = true)]
async fn an_outage_is_never_reported_as_another_holder() {
    let (locks, faults) = client(&MemoryStore::new());
    faults.partition();
    let lock = locks.lock("a").unwrap().ttl(TTL);
    for answer in [lock.acquire().await.err(), lock.clone().wait(TTL / 4).acquire().await.err()] {
        assert!(matches!(answer, Some(Error::Unavailable { .. })), "{answer:?}");
    }
    assert!(matches!(lock.try_acquire().await, Err(Error::Unavailable { .. })));
}

#[tokio::test(start_paused = true)]
async fn a_guard_may_outlive_its_locks_and_move_between_threads() {
    let store = MemoryStore::new();
    let guard = {
        let (locks, _) = client(&store);
        locks.lock("a").unwrap().ttl(TTL).acquire().await.unwrap()
    };
    tokio::time::sleep(TTL * 3).await;
    assert!(guard.is_valid(), "the guard keeps the session alive");
    std::thread::spawn(move || drop(guard)).join().unwrap();
    while !store.contents().is_empty() {
        tokio::task::yield_now().await;
    }
}

#[tokio::test(start_paused = true)]
async fn nothing_works_on_a_closed_client_and_its_locks_are_free() {
    let store = MemoryStore::new();
    let (locks, _) = client(&store);
    let guard = locks.lock("a").unwrap().acquire().await.unwrap();
    locks.driver().close().await.unwrap();
    assert_eq!(guard.lost().await, LossReason::Closed);
    assert_eq!(store.contents(), []);
    assert!(matches!(locks.lock("a").unwrap().acquire().await, Err(Error::Closed { .. })));
}

#[tokio::test(start_paused = true)]
async fn no_task_is_left_behind() {
    let tasks = || tokio::runtime::Handle::current().metrics().num_alive_tasks();
    let before = tasks();
    let (locks, faults) = client(&MemoryStore::new());
    let guard = locks.lock("a").unwrap().acquire().await.unwrap();
    faults.partition();
    drop((guard, locks));
    // A request that was sent into the partition gives up after its TTL.
    tokio::time::sleep(TTL * 10).await;
    assert_eq!(tasks(), before);
}

/// On several threads and with the real clock, as user code runs.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn twenty_thousand_dropped_acquires_leave_nothing() {
    let store = MemoryStore::new();
    let tasks = || tokio::runtime::Handle::current().metrics().num_alive_tasks();
    let (locks, _) = client(&store);
    let before = tasks();
    let mut workers = tokio::task::JoinSet::new();
    for worker in 0..20 {
        let lock = locks.lock(format!("drop-{}", worker % 4)).unwrap();
        workers.spawn(async move {
            for n in 0..1000 {
                let moment = Duration::from_micros(n % 37 * 10);
                let _ = tokio::time::timeout(moment, lock.acquire()).await;
            }
            lock.acquire().await.unwrap().release().await.unwrap();
        });
    }
    workers.join_all().await;
    let nothing = async {
        while !store.contents().is_empty() || tasks() > before {
            tokio::task::yield_now().await;
        }
    };
    tokio::time::timeout(Duration::from_secs(60), nothing).await.unwrap();
}
