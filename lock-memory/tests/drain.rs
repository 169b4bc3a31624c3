//! A drain of a connection while other tasks acquire by it.

use std::{
    fmt::Debug,
    task::{Context, Waker},
    time::Duration,
};

use lock_core::{Clock, ClosedBy, Error, LockGuard, Locks, Owner};
use lock_memory::MemoryStore;
use tokio::{sync::oneshot, task::JoinHandle};

/// Time limit of events that must happen; longer than a stall of a loaded machine.
const PATIENCE: Duration = Duration::from_secs(20);

fn locks() -> Locks {
    Locks::new(MemoryStore::new().client())
}

fn refused<T: Debug>(late: lock_core::Result<T>) {
    assert!(matches!(late, Err(Error::Closed { by: ClosedBy::Drain, .. })), "{late:?}");
}

/// Begins a drain, which waits for the holders.
async fn begin_drain(locks: &Locks) -> JoinHandle<lock_core::Result<usize>> {
    let draining = locks.clone();
    let drain = tokio::spawn(async move { draining.drain(Duration::from_secs(3600)).await });
    tokio::task::yield_now().await;
    drain
}

/// Holds one lock after the other until it is refused. Signals when it begins.
async fn work(locks: Locks, begins: oneshot::Sender<()>) -> Result<u32, String> {
    let (mut begins, mut done) = (Some(begins), 0);
    loop {
        match locks.lock(format!("a{done}")).unwrap().acquire().await {
            Ok(guard) => {
                if let Some(begins) = begins.take() {
                    let _ = begins.send(());
                }
                let valid = guard.is_valid();
                let released = guard.release().await;
                if !valid || released.is_err() {
                    return Err(format!("its lock was taken from it: {released:?}"));
                }
                done += 1;
            }
            Err(Error::Closed { by: ClosedBy::Drain, .. }) => return Ok(done),
            Err(error) => return Err(format!("acquire: {error}")),
        }
    }
}

/// Its process may end as soon as it hears of the drain.
#[tokio::test(start_paused = true)]
async fn a_waiter_is_told_when_it_has_left_the_queue() {
    let store = MemoryStore::new();
    let (locks, other) = (store.client(), Locks::new(store.client()));
    let (faults, locks) = (locks.faults(), Locks::new(locks));
    let held = other.lock("a").unwrap().acquire().await.unwrap();
    // The drain waits for this one, which waits for the next one.
    let outer = locks.lock("b").unwrap().acquire().await.unwrap();
    let waiter = tokio::spawn(locks.lock("a").unwrap().acquire());
    tokio::time::sleep(Duration::from_secs(1)).await;
    let waits = || store.contents()[0].1.len() == 2;
    assert!(waits(), "{:?}", store.contents());
    faults.delay_requests(Duration::from_secs(1));
    let drain = begin_drain(&locks).await;
    refused(waiter.await.unwrap());
    assert!(!waits(), "it is still in line: {:?}", store.contents());
    assert!(outer.is_valid() && !drain.is_finished());
    drop((outer, held));
    assert_eq!(drain.await.unwrap().unwrap(), 0);
}

/// The store does not answer: the waiter returns after a while, and does not hold up the drain.
#[tokio::test(start_paused = true)]
async fn a_waiter_that_cannot_leave_is_told_all_the_same() {
    for limit in [3600, 0] {
        let store = MemoryStore::new();
        let (locks, other) = (store.client(), Locks::new(store.client()));
        let (faults, locks) = (locks.faults(), Locks::new(locks));
        let _held = other.lock("a").unwrap().acquire().await.unwrap();
        let _outer = locks.lock("b").unwrap().acquire().await.unwrap();
        let long = Duration::from_secs(3600);
        let waiter = tokio::spawn(locks.lock("a").unwrap().ttl(long).acquire());
        tokio::time::sleep(Duration::from_secs(1)).await;
        faults.partition();
        let began = Clock::Tokio.now();
        let drain = tokio::spawn(async move { locks.drain(Duration::from_secs(limit)).await });
        refused(waiter.await.unwrap());
        let took = Clock::Tokio.now().since(began);
        assert!(took <= Duration::from_secs(6), "{took:?}");
        drain.abort();
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 4)]
async fn a_drain_that_returns_zero_took_no_lock_away() {
    let mut done = 0;
    for _ in 0..2000 {
        let locks = locks();
        let (begins, begun) = oneshot::channel();
        let worker = tokio::spawn(work(locks.clone(), begins));
        begun.await.unwrap();
        let left = locks.drain(PATIENCE).await.unwrap();
        assert_eq!(left, 0);
        done += worker.await.unwrap().unwrap();
    }
    assert!(done >= 2000, "each has held a lock");
}

#[test]
fn a_drain_ends_with_its_runtime() {
    let home =
        tokio::runtime::Builder::new_multi_thread().worker_threads(1).enable_all().build().unwrap();
    let here = tokio::runtime::Builder::new_multi_thread().enable_all().build().unwrap();
    let (locks, guard) = home.block_on(async {
        let locks = locks();
        let guard = locks.lock("a").unwrap().acquire().await.unwrap();
        (locks, guard)
    });
    let drain = {
        let locks = locks.clone();
        here.spawn(async move { locks.drain(Duration::from_secs(3600)).await })
    };
    home.shutdown_background();
    let drained = here.block_on(async { tokio::time::timeout(PATIENCE, drain).await });
    let told = drained.expect("it does not wait for an hour").unwrap().unwrap_err();
    assert!(matches!(told, Error::Closed { by: ClosedBy::Runtime(_), .. }), "{told}");
    drop(guard);
}

#[tokio::test(start_paused = true)]
async fn the_store_gets_no_request_of_a_newcomer() {
    let store = MemoryStore::new();
    let [locks, other] = [(); 2].map(|()| Locks::new(store.client()));
    let held = locks.lock("held").unwrap().acquire().await.unwrap();
    let mut leaders = other.election("x").unwrap().observe().await.unwrap();
    assert!(leaders.next().await.unwrap().unwrap().is_none());
    let drain = begin_drain(&locks).await;
    let newest = other.token_floor().await.unwrap().newest;
    for lock in [locks.lock("x").unwrap(), locks.lock("x").unwrap().owner(&Owner::new())] {
        refused(lock.acquire().await);
        refused(lock.try_acquire().await);
        refused(lock.wait(Duration::ZERO).acquire().await);
    }
    refused(locks.all(["y", "z"]).unwrap().acquire().await);
    refused(locks.all(["y", "z"]).unwrap().try_acquire().await);
    refused(locks.election("x").unwrap().try_campaign("the drained one").await);
    let led = tokio::time::timeout(Duration::from_secs(1), leaders.next()).await;
    assert!(led.is_err(), "a candidate that was refused led: {led:?}");
    assert_eq!(other.token_floor().await.unwrap().newest, newest, "they were granted locks");
    drop(held);
    assert_eq!(drain.await.unwrap().unwrap(), 0);
}

#[tokio::test(start_paused = true)]
async fn a_refused_adoption_leaves_the_ticket_to_others() {
    let store = MemoryStore::new();
    let [old, leaving, next] = [(); 3].map(|()| Locks::new(store.client()));
    let guard = old.lock("deploy").unwrap().acquire().await.unwrap();
    let token = guard.token();
    let ticket = guard.detach().await.unwrap();
    let held = leaving.lock("held").unwrap().acquire().await.unwrap();
    let drain = begin_drain(&leaving).await;
    refused(leaving.adopt(&ticket).await);
    tokio::time::sleep(Duration::from_millis(50)).await;
    assert_eq!(next.adopt(&ticket).await.unwrap().token(), token);
    drop(held);
    assert_eq!(drain.await.unwrap().unwrap(), 0);
}

#[tokio::test(start_paused = true)]
async fn an_adoption_under_way_is_waited_for() {
    let store = MemoryStore::new();
    let client = store.client();
    let faults = client.faults();
    let (old, leaving) = (Locks::new(store.client()), Locks::new(client));
    let guard = old.lock("deploy").unwrap().acquire().await.unwrap();
    let token = guard.token();
    let ticket = guard.detach().await.unwrap();
    faults.delay(Duration::from_secs(1));
    let adoption = tokio::spawn(leaving.adopt(&ticket));
    tokio::task::yield_now().await;
    let drain = begin_drain(&leaving).await;
    let adopted = adoption.await.unwrap().unwrap();
    assert_eq!(adopted.token(), token);
    tokio::time::sleep(Duration::from_secs(60)).await;
    assert!(adopted.is_valid() && !drain.is_finished(), "it is held");
    adopted.release().await.unwrap();
    assert_eq!(drain.await.unwrap().unwrap(), 0);
}

#[tokio::test(start_paused = true)]
async fn a_release_under_way_is_waited_for_although_its_caller_has_left() {
    for leave in [
        |guard| drop(guard),
        |guard: LockGuard| {
            // The release is sent, and dropped half-way.
            let mut release = Box::pin(guard.release());
            let _ = release.as_mut().poll(&mut Context::from_waker(Waker::noop()));
        },
    ] {
        let store = MemoryStore::new();
        let client = store.client();
        let faults = client.faults();
        let locks = Locks::new(client);
        let guard = locks.lock("a").unwrap().acquire().await.unwrap();
        faults.delay(Duration::from_secs(1));
        leave(guard);
        assert_eq!(locks.drain(Duration::from_secs(60)).await.unwrap(), 0);
        assert!(store.contents().is_empty(), "{:?}", store.contents());
    }
}

/// Its process may end as soon as it hears of the drain.
#[tokio::test(start_paused = true)]
async fn a_set_is_told_when_it_has_given_back_what_it_had() {
    let store = MemoryStore::new();
    let (locks, other) = (store.client(), Locks::new(store.client()));
    let (faults, locks) = (locks.faults(), Locks::new(locks));
    let held = other.lock("b").unwrap().acquire().await.unwrap();
    let waiter = tokio::spawn(locks.all(["a", "b"]).unwrap().acquire());
    tokio::time::sleep(Duration::from_secs(1)).await;
    assert_eq!(store.contents().len(), 2, "{:?}", store.contents());
    faults.delay_requests(Duration::from_millis(500));
    let drain = begin_drain(&locks).await;
    refused(waiter.await.unwrap());
    let left = store.contents();
    assert!(left.len() == 1 && left[0].1.len() == 1, "its part is still held: {left:?}");
    drop(held);
    assert_eq!(drain.await.unwrap().unwrap(), 0);
}
