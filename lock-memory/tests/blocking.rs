//! The blocking API in the test's own runtime, mostly on a paused clock: no test waits for a TTL.

use std::{sync::Arc, thread, time::Duration};

use lock_core::{Clock, Error, Instant, LockName, Locks, LossReason, blocking};
use lock_memory::{Faults, MemoryStore};
use tokio::runtime::{Builder, Runtime};

/// Too long to wait for in real time.
const TTL: Duration = Duration::from_secs(12 * 3600);

/// Returns a runtime with a clock that stands still unless a thread waits in it.
fn paused() -> Arc<Runtime> {
    Arc::new(Builder::new_current_thread().enable_time().start_paused(true).build().unwrap())
}

fn locks(clock: &Arc<Runtime>, store: &MemoryStore) -> blocking::Locks {
    faulty(clock, store).0
}

fn faulty(clock: &Arc<Runtime>, store: &MemoryStore) -> (blocking::Locks, Faults) {
    let connect = async { Ok(Locks::new(store.client())) };
    let locks = blocking::Locks::open_in(clock.clone(), connect).unwrap();
    (locks, store.faults().pop().unwrap())
}

fn now(clock: &Runtime) -> Instant {
    clock.block_on(async { Clock::Tokio.now() })
}

fn pass(clock: &Runtime, time: Duration) {
    clock.block_on(async { tokio::time::sleep(time).await });
}

#[test]
fn time_passes_only_while_a_thread_waits() {
    let (clock, store) = (paused(), MemoryStore::new());
    let (a, b) = (locks(&clock, &store), locks(&clock, &store));
    let guard = a.lock("a").unwrap().ttl(TTL).acquire().unwrap();
    let began = now(&clock);
    thread::sleep(Duration::from_millis(5)); // real time, which the paused clock ignores
    assert_eq!(now(&clock), began);
    let waited = b.lock("a").unwrap().wait(TTL * 2).acquire();
    assert!(matches!(waited, Err(Error::WaitTimeout { .. })), "{waited:?}");
    assert!(now(&clock).since(began) >= TTL * 2);
    assert!(guard.is_valid() && !guard.remaining().is_zero(), "it was renewed meanwhile");
    guard.release().unwrap();
    b.lock("a").unwrap().acquire().unwrap().release().unwrap();
}

#[test]
fn guards_read_the_paused_clock_and_not_the_real_one() {
    let (clock, store) = (paused(), MemoryStore::new());
    let locks = locks(&clock, &store);
    let guard = locks.lock("a").unwrap().ttl(TTL).fixed_term().acquire().unwrap();
    let (held, left) = (guard.held(), guard.remaining());
    pass(&clock, TTL / 2);
    assert_eq!(guard.remaining(), left - TTL / 2);
    assert_eq!(held.remaining(), left - TTL / 2);
    let there = thread::spawn(move || held.is_valid()).join().unwrap();
    assert!(guard.is_valid() && there);
    pass(&clock, TTL / 2);
    assert!(!guard.is_valid() && !guard.held().is_valid());
    assert_eq!(guard.lost_within(Duration::ZERO).unwrap(), Some(LossReason::TermOver));
    assert!(matches!(guard.release(), Err(Error::Lost { .. })));
}

#[test]
fn every_fault_is_reported() {
    let clock = paused();
    let lost = |fault: &dyn Fn(&MemoryStore, &Faults, &LockName)| {
        let store = MemoryStore::new();
        let (locks, faults) = faulty(&clock, &store);
        let guard = locks.lock("a").unwrap().ttl(TTL).acquire().unwrap();
        fault(&store, &faults, guard.name());
        let told = guard.lost_within(TTL * 2).unwrap();
        assert_eq!(guard.is_valid(), told.is_none());
        told
    };
    assert_eq!(lost(&|_, _, _| {}), None);
    assert_eq!(lost(&|_, faults, _| faults.partition()), Some(LossReason::Expired));
    assert_eq!(lost(&|_, faults, _| faults.pause_renewal()), Some(LossReason::Expired));
    assert_eq!(lost(&|_, faults, _| faults.delay(TTL)), Some(LossReason::Expired));
    assert_eq!(lost(&|store, _, name| store.expire(name)), Some(LossReason::EntryGone));
    assert_eq!(lost(&|store, _, name| store.delete(name)), Some(LossReason::EntryGone));
    assert_eq!(
        lost(&|_, faults, name| assert_eq!(faults.lose(name), 1)),
        Some(LossReason::EntryGone)
    );
}

#[test]
fn an_unreachable_store_is_an_error_at_once() {
    let (clock, store) = (paused(), MemoryStore::new());
    let (locks, faults) = faulty(&clock, &store);
    let lock = locks.lock("a").unwrap().ttl(TTL);
    faults.partition();
    assert!(matches!(lock.acquire(), Err(Error::Unavailable { .. })));
    assert!(matches!(lock.try_acquire(), Err(Error::Unavailable { .. })));
    assert!(matches!(locks.ping(), Err(Error::Unavailable { .. })));
    faults.heal();
    lock.acquire().unwrap().release().unwrap();
}

#[test]
fn dropping_gives_back_before_it_returns() {
    let (clock, store) = (paused(), MemoryStore::new());
    let ((locks, faults), other) = (faulty(&clock, &store), locks(&clock, &store));
    drop(locks.lock("a").unwrap().acquire().unwrap());
    drop(locks.all(["a", "b"]).unwrap().acquire().unwrap());
    drop(locks.election("a").unwrap().campaign("me").unwrap());
    assert_eq!(store.contents(), []);
    // If the store is not reached, a drop does not wait for ever, and takes no real time.
    let guard = locks.lock("a").unwrap().ttl(TTL).acquire().unwrap();
    faults.partition();
    drop(guard);
    assert_eq!(store.contents().len(), 1);
    faults.heal();
    other.lock("a").unwrap().acquire().unwrap().release().unwrap();
    let guard = locks.lock("a").unwrap().acquire().unwrap();
    drop(locks);
    assert!(guard.is_valid());
    drop(guard);
    assert_eq!((store.contents(), store.faults().len()), (vec![], 1));
}

#[test]
fn threads_wait_for_each_other() {
    let store = MemoryStore::new();
    let locks = blocking::Locks::new(|| store.client()).unwrap();
    let count = std::sync::Mutex::new(0);
    thread::scope(|scope| {
        for _ in 0..4 {
            scope.spawn(|| {
                for _ in 0..25 {
                    let guard = locks.lock("a").unwrap().acquire().unwrap();
                    *count.try_lock().expect("one at a time") += 1;
                    guard.release().unwrap();
                }
            });
        }
    });
    assert_eq!(*count.lock().unwrap(), 100);
}

#[test]
fn a_runtime_of_its_own_renews_between_calls() {
    // The test pauses for a third of it. The rest is for a stall of the machine.
    let (store, ttl) = (MemoryStore::new(), Duration::from_secs(12));
    let own = blocking::Locks::new(|| store.client()).unwrap();
    let shared = Builder::new_multi_thread().worker_threads(1).enable_all().build();
    let shared = Arc::new(shared.unwrap());
    let connect = async { Ok(Locks::new(store.client())) };
    let given = blocking::Locks::open_in(shared.clone(), connect).unwrap();
    let hold =
        |(name, locks): (&str, blocking::Locks)| locks.lock(name).unwrap().ttl(ttl).acquire();
    let guards = [("own", own), ("given", given)].map(|both| hold(both).unwrap());
    let began = Clock::Boot.now();
    let mut left = guards.each_ref().map(|guard| guard.remaining());
    let mut renewed = [false; 2];
    while renewed != [true; 2] {
        assert!(Clock::Boot.now().since(began) < ttl * 3, "renewed: {renewed:?}");
        thread::sleep(Duration::from_millis(10));
        for (at, guard) in guards.iter().enumerate() {
            // The remaining time falls unless the lock is renewed.
            let before = std::mem::replace(&mut left[at], guard.remaining());
            renewed[at] |= left[at] > before;
        }
    }
    drop(guards);
    assert_eq!(store.contents(), []);
    assert_eq!(Arc::strong_count(&shared), 1, "it is the caller's alone again");
}

#[test]
fn inside_async_code_it_is_refused() {
    let (clock, store) = (paused(), MemoryStore::new());
    let locks = locks(&clock, &store);
    let connect = async { Ok(Locks::new(store.client())) };
    let refused = clock.block_on(async {
        let refused = locks.lock("a").unwrap().acquire();
        let connected = blocking::Locks::open_in(clock.clone(), connect);
        [refused.map(drop), connected.map(drop)]
    });
    for refused in refused {
        assert!(matches!(refused, Err(Error::Unsupported { .. })), "{refused:?}");
    }
}
