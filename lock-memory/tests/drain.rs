//! The end of a connection while others acquire by it.

use std::time::Duration;

use lock_core::{ClosedBy, Error, Locks};
use lock_memory::MemoryStore;
use tokio::sync::oneshot;

/// For what must happen; longer than a stall of a loaded machine.
const PATIENCE: Duration = Duration::from_secs(20);

fn locks() -> Locks {
    Locks::new(MemoryStore::new().client())
}

/// Holds one lock after the other until it is refused; says when it begins.
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

#[tokio::test(flavor = "multi_thread", worker_threads = 4)]
async fn a_drain_that_answers_zero_took_nothing_from_anybody() {
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
