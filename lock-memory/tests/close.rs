//! The close of a connection by several callers at once.

use std::{
    sync::{
        Arc,
        atomic::{AtomicUsize, Ordering},
    },
    time::Duration,
};

use async_trait::async_trait;
use lock_core::{
    Attempt, Clock, DistributedLock, Entry, Error, Guarantees, Lease, LockName, Locks, LossReason,
    Request, Result,
};
use lock_memory::{MemoryLock, MemoryStore};
use uuid::Uuid;

/// The limit that [`Locks::close`] documents.
const CLOSE_LIMIT: Duration = Duration::from_secs(5);

/// A store whose first close takes a while. A second one would find nothing left to do, as in a
/// store where the first close takes all sessions.
#[derive(Debug)]
struct Slow {
    inner: MemoryLock,
    takes: Duration,
    closes: Arc<AtomicUsize>,
}

#[async_trait]
impl DistributedLock for Slow {
    fn guarantees(&self) -> &Guarantees {
        self.inner.guarantees()
    }

    fn clock(&self) -> Clock {
        self.inner.clock()
    }

    async fn acquire(&self, request: Request, attempt: Attempt) -> Result<Box<dyn Lease>> {
        self.inner.acquire(request, attempt).await
    }

    async fn inspect(&self, name: &LockName) -> Result<Vec<Entry>> {
        self.inner.inspect(name).await
    }

    async fn names(&self, prefix: &str) -> Result<Vec<LockName>> {
        self.inner.names(prefix).await
    }

    async fn revoke(&self, name: &LockName, attempt: Uuid) -> Result<bool> {
        self.inner.revoke(name, attempt).await
    }

    async fn close(&self) -> Result<()> {
        if self.closes.fetch_add(1, Ordering::SeqCst) > 0 {
            return Ok(());
        }
        tokio::time::sleep(self.takes).await;
        self.inner.close().await
    }
}

/// Returns locks whose close takes this long, and the number of closes of the store.
fn slow(store: &MemoryStore, takes: Duration) -> (Locks, Arc<AtomicUsize>) {
    let closes = Arc::new(AtomicUsize::new(0));
    (Locks::new(Slow { inner: store.client(), takes, closes: closes.clone() }), closes)
}

async fn timed(locks: Locks) -> (Result<()>, Duration) {
    let began = Clock::Tokio.now();
    let closed = locks.close().await;
    (closed, Clock::Tokio.now().since(began))
}

#[tokio::test(start_paused = true)]
async fn a_second_close_waits_for_the_first() {
    let store = MemoryStore::new();
    let (locks, closes) = slow(&store, Duration::from_secs(3));
    let guard = locks.lock("a").unwrap().acquire().await.unwrap();
    let first = tokio::spawn(timed(locks.clone()));
    tokio::time::sleep(Duration::from_secs(1)).await;
    let (second, took) = timed(locks.clone()).await;
    second.unwrap();
    assert!(took >= Duration::from_secs(2), "it did not wait: {took:?}");
    assert!(store.contents().is_empty(), "it is confirmed");
    first.await.unwrap().0.unwrap();
    locks.close().await.unwrap();
    assert_eq!(closes.load(Ordering::SeqCst), 1);
    assert_eq!(guard.lost().await, LossReason::Closed);
}

#[tokio::test(start_paused = true)]
async fn a_close_without_confirmation_is_an_error_for_every_caller() {
    let (locks, _) = slow(&MemoryStore::new(), Duration::from_secs(3600));
    let _guard = locks.lock("a").unwrap().acquire().await.unwrap();
    let first = tokio::spawn(timed(locks.clone()));
    tokio::time::sleep(Duration::from_secs(1)).await;
    for (closed, took) in [timed(locks.clone()).await, first.await.unwrap(), timed(locks).await] {
        let told = closed.unwrap_err();
        assert!(matches!(told, Error::Unavailable { op: "close", .. }), "{told:?}");
        assert!(told.to_string().contains("not confirmed"), "{told}");
        assert!(took <= CLOSE_LIMIT + Duration::from_secs(1), "{took:?}");
    }
}

#[tokio::test(start_paused = true)]
async fn a_close_whose_caller_has_left_goes_on() {
    let store = MemoryStore::new();
    let (locks, closes) = slow(&store, Duration::from_secs(3));
    let _guard = locks.lock("a").unwrap().acquire().await.unwrap();
    let left = tokio::time::timeout(Duration::from_millis(10), locks.close()).await;
    left.unwrap_err();
    locks.close().await.unwrap();
    assert!(store.contents().is_empty(), "it is confirmed");
    assert_eq!(closes.load(Ordering::SeqCst), 1);
}
