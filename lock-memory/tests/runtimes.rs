//! Callers that wait by the handle of the runtime that connected. The handle outlives the runtime.

use std::{fmt::Debug, future::Future, sync::mpsc, thread, time::Duration};

use lock_core::{ClosedBy, Error, LockGuard, Locks};
use lock_memory::MemoryStore;
use tokio::runtime::{Builder, Handle, Runtime};

/// Time limit of events that must happen; longer than a stall of a loaded machine.
const PATIENCE: Duration = Duration::from_secs(30);
/// Longer than the time that work stays in its caller's task.
const WHILE: Duration = Duration::from_millis(200);

fn runtime() -> Runtime {
    Builder::new_multi_thread().worker_threads(2).enable_all().build().unwrap()
}

/// Returns locks of a runtime, and a guard of one that is held.
fn connect(home: &Runtime) -> (Locks, LockGuard) {
    home.block_on(async {
        let locks = Locks::new(MemoryStore::new().client());
        let guard = locks.lock("a").unwrap().acquire().await.unwrap();
        (locks, guard)
    })
}

/// Runs work by the handle in a thread of its own. Returns the receiver of its result.
fn by_handle<T: Send + 'static>(
    handle: &Handle,
    work: impl Future<Output = T> + Send + 'static,
) -> mpsc::Receiver<T> {
    let (tell, told) = mpsc::channel();
    let handle = handle.clone();
    thread::spawn(move || tell.send(handle.block_on(work)));
    told
}

fn ended<T: Debug>(told: Result<lock_core::Result<T>, mpsc::RecvTimeoutError>) {
    let told = told.expect("it neither waits for ever nor panics");
    assert!(matches!(told, Err(Error::Closed { by: ClosedBy::Runtime(_), .. })), "{told:?}");
}

async fn queued(locks: &Locks) {
    while locks.inspect("a").await.unwrap().len() < 2 {
        tokio::time::sleep(Duration::from_millis(5)).await;
    }
}

#[test]
fn a_wait_by_the_handle_ends_with_the_runtime() {
    // In the thread itself, and in a task of its own.
    for pause in [Duration::ZERO, WHILE] {
        let home = runtime();
        let (locks, _guard) = connect(&home);
        let told = by_handle(home.handle(), locks.lock("a").unwrap().acquire());
        home.block_on(async {
            queued(&locks).await;
            tokio::time::sleep(pause).await;
        });
        home.shutdown_background();
        ended(told.recv_timeout(PATIENCE));
    }
}

#[test]
fn a_wait_that_has_moved_to_another_runtime_ends_with_its_own() {
    let (home, here) = (runtime(), runtime());
    let (locks, _guard) = connect(&home);
    let mut waiting = Box::pin(locks.lock("a").unwrap().acquire());
    home.block_on(async {
        tokio::time::timeout(WHILE, &mut waiting).await.unwrap_err();
    });
    drop(home);
    ended(by_handle(here.handle(), waiting).recv_timeout(PATIENCE));
}

#[test]
fn a_runtime_ends_although_its_blocking_work_waits() {
    let home = runtime();
    let (locks, _guard) = connect(&home);
    let lock = locks.lock("a").unwrap();
    let told = home.block_on(async {
        let (tell, told) = mpsc::channel();
        tokio::task::spawn_blocking(move || tell.send(Handle::current().block_on(lock.acquire())));
        queued(&locks).await;
        tokio::time::sleep(WHILE).await;
        told
    });
    let (tell, over) = mpsc::channel();
    thread::spawn(move || {
        drop(home);
        tell.send(())
    });
    over.recv_timeout(PATIENCE).expect("it ends");
    ended(told.recv_timeout(PATIENCE));
}

#[test]
fn later_calls_by_the_handle_fail_because_the_runtime_has_ended() {
    let home = runtime();
    let (locks, guard) = connect(&home);
    let handle = home.handle().clone();
    drop(home);
    let all = {
        let locks = locks.clone();
        async move {
            [
                locks.lock("b").unwrap().acquire().await.map(drop),
                locks.inspect("a").await.map(drop),
                locks.names("").await.map(drop),
                locks.ping().await.map(drop),
                guard.renew().await,
                guard.release().await,
                locks.drain(Duration::from_secs(1)).await.map(drop),
                locks.close().await,
            ]
        }
    };
    let told = by_handle(&handle, all).recv_timeout(PATIENCE).expect("it panics");
    told.into_iter().for_each(|told| ended(Ok(told)));
}
