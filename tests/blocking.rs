//! The blocking API: the same locks, from any thread, and an error inside an async runtime.

use std::{
    sync::atomic::{AtomicU64, Ordering},
    thread,
    time::Duration,
};

use distlock::{Error, Kind, blocking};
use lock_core::Clock;
use tokio::runtime::Builder;

/// A private store in memory.
fn memory() -> blocking::Locks {
    blocking::connect(format!("memory:{}", uuid::Uuid::new_v4())).unwrap()
}

#[test]
fn threads_exclude_each_other() {
    let locks = memory();
    let (counter, inside) = (AtomicU64::new(0), AtomicU64::new(0));
    thread::scope(|scope| {
        for _ in 0..8 {
            let lock = locks.lock("counter").unwrap();
            scope.spawn(|| {
                let lock = lock;
                for _ in 0..100 {
                    let guard = lock.acquire().unwrap();
                    assert_eq!(inside.fetch_add(1, Ordering::SeqCst), 0);
                    let read = counter.load(Ordering::SeqCst);
                    thread::yield_now();
                    counter.store(read + 1, Ordering::SeqCst);
                    inside.fetch_sub(1, Ordering::SeqCst);
                    guard.release().unwrap();
                }
            });
        }
    });
    assert_eq!(counter.into_inner(), 800);
}

#[test]
fn every_kind_can_be_locked() {
    let locks = memory();
    let mut writer = locks.lock("a").unwrap().acquire().unwrap();
    assert!(locks.shared("a").unwrap().try_acquire().unwrap().is_none());
    writer.downgrade().unwrap();
    let reader = locks.shared("a").unwrap().try_acquire().unwrap().unwrap();
    assert_eq!((writer.kind(), reader.kind()), (Kind::Shared, Kind::Shared));
    assert!(!writer.try_upgrade().unwrap());
    reader.release().unwrap();
    assert!(writer.try_upgrade().unwrap());
    writer.renew().unwrap();
    assert_eq!(writer.lost_within(Duration::from_millis(1)).unwrap(), None);
    assert_eq!(locks.names("").unwrap(), ["a"].map(|name| distlock::LockName::new(name).unwrap()));

    let permits = locks.semaphore("p", 3).unwrap().acquire_many(2).unwrap();
    assert!(locks.semaphore("p", 3).unwrap().try_acquire_many(2).unwrap().is_none());
    assert!(permits.is_valid() && !permits.remaining().is_zero());

    let both = locks.all(["y", "x"]).unwrap().acquire().unwrap();
    assert_eq!(both.get("x").map(|held| held.name().as_str()), Some("x"));
    assert!(both.get("z").is_none() && both.held().is_valid());
    assert_eq!(permits.held().token(), permits.token());
    let names: Vec<_> = both.tokens().map(|(name, _)| name.to_string()).collect();
    assert_eq!(names, ["x", "y"]);
    assert!(locks.all(["z", "y"]).unwrap().try_acquire().unwrap().is_none());
    both.release().unwrap();

    let readers = locks.all(["x", "y"]).unwrap().shared().unwrap().acquire().unwrap();
    let mixed = locks.all(["z"]).unwrap().and_shared(["y"]).unwrap();
    mixed.try_acquire().unwrap().expect("a reader of y").release().unwrap();
    assert!(locks.all(["y"]).unwrap().try_acquire().unwrap().is_none());
    readers.release().unwrap();
}

/// Asks this process to end, as a service manager does.
fn terminate() {
    let pid = std::process::id().to_string();
    assert!(std::process::Command::new("kill").args(["-TERM", &pid]).status().unwrap().success());
}

#[test]
fn a_signal_ends_waits_and_leaves_the_work_its_lock() {
    if !lock_lab::in_own_process("blocking::a_signal_ends_waits_and_leaves_the_work_its_lock") {
        return;
    }
    let url = format!("memory:{}", uuid::Uuid::new_v4());
    let [locks, other] = [0, 1].map(|_| blocking::connect(&url).unwrap());
    let _busy = other.lock("busy").unwrap().acquire().unwrap();
    let ttl = Duration::from_secs(8);
    let lock = locks.lock("held").unwrap().ttl(ttl);
    let worked = locks.drain_on_signal(Duration::from_secs(60), |asked| {
        let guard = lock.acquire().unwrap();
        let ended = thread::scope(|scope| {
            let waiter = scope.spawn(|| locks.lock("busy").unwrap().acquire());
            while other.inspect("busy").unwrap().len() < 2 {
                thread::yield_now();
            }
            assert!(!asked.load(Ordering::Relaxed));
            terminate();
            waiter.join().unwrap()
        });
        assert!(ended.is_err_and(|error| error.is_closed()));
        assert!(asked.load(Ordering::Relaxed));
        assert_eq!(other.inspect("busy").unwrap().len(), 1, "it has left the queue");
        assert!(lock.acquire().is_err_and(|error| error.is_closed()), "nothing new");
        // Held, and renewed, for longer than a TTL.
        thread::sleep(ttl * 5 / 4);
        assert!(guard.is_valid());
        assert!(other.lock("held").unwrap().try_acquire().unwrap().is_none());
        7
    });
    assert_eq!(worked.unwrap(), 7);
    assert!(other.lock("held").unwrap().try_acquire().unwrap().is_some());
}

#[test]
fn work_that_does_not_end_keeps_its_lock_for_the_limit() {
    if !lock_lab::in_own_process("blocking::work_that_does_not_end_keeps_its_lock_for_the_limit") {
        return;
    }
    let locks = memory();
    locks
        .drain_on_signal(Duration::from_millis(100), |_| {
            let guard = locks.lock("a").unwrap().acquire().unwrap();
            terminate();
            let lost = guard.lost_within(Duration::from_secs(60)).unwrap();
            assert_eq!(lost, Some(distlock::LossReason::Closed));
        })
        .unwrap();
}

#[test]
fn a_wait_ends_at_its_limit() {
    let locks = memory();
    let _held = locks.lock("a").unwrap().holder("somebody else").acquire().unwrap();
    let waited = locks.lock("a").unwrap().wait(Duration::from_millis(20)).acquire();
    let error = waited.unwrap_err();
    assert!(matches!(error, Error::WaitTimeout { .. }), "{error:?}");
    assert!(error.to_string().contains("somebody else"), "{error}");
}

#[test]
fn a_dropped_guard_is_released_when_drop_returns() {
    let locks = memory();
    drop(locks.lock("a").unwrap().acquire().unwrap());
    assert!(locks.inspect("a").unwrap().is_empty());
}

#[test]
fn a_connection_that_is_gone_has_given_everything_back() {
    let (name, store) = ("a", "memory:a-connection-that-is-gone");
    let (first, second) = (blocking::connect(store).unwrap(), blocking::connect(store).unwrap());
    let guard = first.lock(name).unwrap().acquire().unwrap();
    drop(first);
    assert!(guard.is_valid(), "a guard keeps its connection");
    drop(guard);
    assert!(second.lock(name).unwrap().try_acquire().unwrap().is_some());
    second.close().unwrap();
    let late = second.lock(name).unwrap().acquire();
    assert!(matches!(late, Err(Error::Closed { .. })), "{late:?}");
}

#[test]
fn a_call_inside_an_async_runtime_is_an_error_not_a_deadlock() {
    let locks = memory();
    let guard = locks.lock("held").unwrap().acquire().unwrap();
    let other = locks.lock("dropped").unwrap().acquire().unwrap();
    let runtime = Builder::new_current_thread().build().unwrap();
    runtime.block_on(async {
        for refused in [
            blocking::connect("memory:").map(drop),
            locks.lock("a").unwrap().acquire().map(drop),
            locks.lock("a").unwrap().try_acquire().map(drop),
            locks.inspect("a").map(drop),
            guard.release(),
        ] {
            let error = refused.unwrap_err();
            assert!(error.to_string().contains("async"), "{error}");
        }
        drop(other);
    });
    // Both are still released, in the background.
    for name in ["held", "dropped"] {
        locks.lock(name).unwrap().acquire().unwrap().release().unwrap();
    }
}

#[test]
fn the_last_handle_may_go_inside_an_async_runtime() {
    let store = format!("memory:{}", uuid::Uuid::new_v4());
    let guard = blocking::connect(&store).unwrap().lock("a").unwrap().acquire().unwrap();
    let runtime = Builder::new_current_thread().build().unwrap();
    runtime.block_on(async { drop(guard) });
    // Long before the TTL ends.
    let next = blocking::connect(&store).unwrap().lock("a").unwrap();
    next.wait(Duration::from_secs(5)).acquire().unwrap().release().unwrap();
}

#[tokio::test]
async fn a_blocking_thread_of_a_runtime_can_lock() {
    let release = || memory().lock("a")?.acquire()?.release();
    tokio::task::spawn_blocking(release).await.unwrap().unwrap();
}

#[test]
fn elections() {
    let locks = memory();
    let election = locks.election("head").unwrap();
    let mut observer = election.observe().unwrap();
    assert_eq!(observer.next().unwrap().unwrap(), None);
    let mut leading = election.campaign("first").unwrap();
    assert!(election.try_campaign("second").unwrap().is_none());
    leading.proclaim("new").unwrap();
    let leader = election.leader().unwrap().unwrap();
    assert_eq!((leader.token, leader.value.as_slice()), (leading.token(), b"new".as_slice()));
    assert!(leading.is_valid() && leading.name().as_str() == "head");
    let next = thread::spawn(move || election.campaign("second").unwrap());
    leading.resign().unwrap();
    drop(next.join().unwrap());
    drop(locks);
    let mut seen = Vec::new();
    while seen.len() < 4 || seen.last() != Some(&None) {
        let change = observer.next_within(Duration::from_secs(20)).unwrap().expect("a change");
        seen.push(change.map(|leader| String::from_utf8(leader.value).unwrap()));
    }
    let values: Vec<_> = seen.iter().flatten().map(String::as_str).collect();
    assert_eq!(values, ["first", "new", "second"]);
    assert_eq!(observer.next_within(Duration::from_millis(1)).unwrap(), None);
}

#[test]
fn an_owner_acquires_again() {
    let locks = memory();
    let owner = distlock::Owner::new();
    let lock = locks.lock("a").unwrap().owner(&owner);
    let (outer, inner) = (lock.acquire().unwrap(), lock.acquire().unwrap());
    assert_eq!(outer.token(), inner.token());
    outer.release().unwrap();
    assert!(locks.lock("a").unwrap().try_acquire().unwrap().is_none());
    inner.release().unwrap();
    assert!(locks.lock("a").unwrap().try_acquire().unwrap().is_some());
}

#[test]
fn a_leader_that_campaigns_again_proclaims() {
    let locks = memory();
    let election = locks.election("head").unwrap().owner(&distlock::Owner::new());
    let (first, second) =
        (election.campaign("first").unwrap(), election.campaign("second").unwrap());
    assert_eq!(election.leader().unwrap().unwrap().value, b"second");
    first.resign().unwrap();
    assert!(locks.election("head").unwrap().try_campaign("other").unwrap().is_none());
    second.resign().unwrap();
    assert_eq!(election.leader().unwrap(), None);
}

#[test]
fn a_lock_released_early_is_kept_for_its_least_time() {
    const LEAST: Duration = Duration::from_millis(1500);
    let locks = memory();
    let lock = locks.lock("a").unwrap().at_least(LEAST);
    let asked = Clock::Boot.now();
    lock.acquire().unwrap().release().unwrap();
    assert!(Clock::Boot.now().since(asked) >= LEAST);
    drop(lock.acquire().unwrap());
    lock.acquire().unwrap().release().unwrap();
    assert!(Clock::Boot.now().since(asked) >= LEAST * 3);
}

/// A connection by URL works on a paused clock, which advances only during a wait.
#[cfg(feature = "memory")]
#[test]
fn a_paused_clock_takes_a_url_too() {
    let clock = Builder::new_current_thread().enable_time().start_paused(true).build().unwrap();
    let url = "memory:a-paused-clock-takes-a-url";
    let locks = blocking::Locks::open_in(clock, distlock::connect(url)).unwrap();
    let guard = locks.lock("a").unwrap().acquire().unwrap();
    let asked = Clock::Boot.now();
    let day = Duration::from_secs(86_400);
    assert!(locks.lock("a").unwrap().wait(day).acquire().unwrap_err().is_busy());
    assert!(Clock::Boot.now().since(asked) < day / 2);
    distlock::memory::MemoryStore::named("a-paused-clock-takes-a-url").expire(guard.name());
    assert!(guard.lost_within(day).unwrap().is_some());
}

/// Otherwise held locks would not be renewed between two calls.
#[cfg(feature = "sqlite")]
#[test]
fn a_store_outside_this_process_needs_a_runtime_that_runs() {
    let folder = tempfile::tempdir().unwrap();
    let url = format!("sqlite:{}", folder.path().join("locks").display());
    let stands_still = Builder::new_current_thread().enable_all().build().unwrap();
    let refused = blocking::Locks::open_in(stands_still, distlock::connect(&url)).unwrap_err();
    assert!(matches!(refused, Error::Unsupported { .. }), "{refused:?}");
    assert!(refused.to_string().contains("multi-thread"), "{refused}");
    let runs = Builder::new_multi_thread().worker_threads(1).enable_all().build().unwrap();
    let locks = blocking::Locks::open_in(runs, distlock::connect(&url)).unwrap();
    locks.lock("a").unwrap().acquire().unwrap().release().unwrap();
}
