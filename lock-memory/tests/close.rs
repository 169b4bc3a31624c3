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
use tokio::sync::{oneshot, watch};
use uuid::Uuid;

/// The limit that [`Locks::close`] documents.
const CLOSE_LIMIT: Duration = Duration::from_secs(5);

/// A store whose first close takes a while. A second one would find nothing left to do, as in a
/// store where the first close takes all sessions.
#[derive(Debug)]
struct Slow {
    inner: MemoryLock,
    takes: Duration,
    /// It tells its waiters before the store knows.
    closing: watch::Sender<bool>,
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
        let mut closing = self.closing.subscribe();
        tokio::select! {
            granted = self.inner.acquire(request, attempt) => granted,
            _ = closing.wait_for(|closing| *closing) => Err(Error::closed("memory")),
        }
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
        self.closing.send_replace(true);
        tokio::time::sleep(self.takes).await;
        self.inner.close().await
    }
}

/// Returns locks whose close takes this long, and the number of closes of the store.
fn slow(store: &MemoryStore, takes: Duration) -> (Locks, Arc<AtomicUsize>) {
    let closes = Arc::new(AtomicUsize::new(0));
    (
        Locks::new(Slow {
            inner: store.client(),
            takes,
            closing: watch::Sender::new(false),
            closes: closes.clone(),
        }),
        closes,
    )
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

/// A program may end as soon as one of them returns.
#[tokio::test(start_paused = true)]
async fn waiters_and_work_return_when_the_close_has_ended() {
    let store = MemoryStore::new();
    let (locks, _) = slow(&store, Duration::from_secs(3));
    let (dropped, work_dropped) = oneshot::channel::<()>();
    let run = tokio::spawn(locks.lock("a").unwrap().run(|_| async move {
        let _dropped = dropped;
        std::future::pending::<()>().await
    }));
    let set = locks.all(["b", "c"]).unwrap().run(|_| std::future::pending::<()>());
    let set = tokio::spawn(set);
    tokio::task::yield_now().await;
    let waiter = tokio::spawn(locks.lock("a").unwrap().acquire());
    let candidate = tokio::spawn(locks.election("a").unwrap().campaign("me"));
    let of_two = tokio::spawn(locks.all(["a", "d"]).unwrap().acquire());
    tokio::time::sleep(Duration::from_secs(1)).await;
    assert_eq!(store.contents().len(), 3, "{:?}", store.contents());
    let began = Clock::Tokio.now();
    let close = tokio::spawn(timed(locks.clone()));
    work_dropped.await.unwrap_err();
    let at_once = Clock::Tokio.now().since(began);
    assert!(at_once < Duration::from_secs(1), "the work goes on without its lock: {at_once:?}");
    for told in [
        run.await.unwrap(),
        set.await.unwrap(),
        waiter.await.unwrap().map(drop),
        candidate.await.unwrap().map(drop),
        of_two.await.unwrap().map(drop),
    ] {
        let closed = |error: &Error| {
            error.is_closed() || matches!(error, Error::Lost { reason: LossReason::Closed, .. })
        };
        assert!(told.as_ref().is_err_and(closed), "{told:?}");
        assert!(store.contents().is_empty(), "the close has not ended: {:?}", store.contents());
    }
    close.await.unwrap().0.unwrap();
}

/// A test of a driver closes it, and nobody else does.
#[tokio::test(start_paused = true)]
async fn a_close_of_the_driver_itself_is_told_at_once() {
    let (locks, _) = slow(&MemoryStore::new(), Duration::from_secs(3));
    let _guard = locks.lock("a").unwrap().acquire().await.unwrap();
    let waiter = tokio::spawn(locks.lock("a").unwrap().acquire());
    tokio::task::yield_now().await;
    let (driver, began) = (locks.driver().clone(), Clock::Tokio.now());
    let close = tokio::spawn(async move { driver.close().await });
    assert!(waiter.await.unwrap().unwrap_err().is_closed());
    assert!(Clock::Tokio.now().since(began) < Duration::from_secs(1));
    close.await.unwrap().unwrap();
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

/// A program may end as soon as one of them returns.
#[tokio::test(start_paused = true)]
async fn what_a_close_took_is_told_when_it_has_ended() {
    let store = MemoryStore::new();
    let (locks, _) = slow(&store, Duration::from_secs(3));
    let other = Locks::new(store.client());
    let _held = other.lock("z").unwrap().acquire().await.unwrap();
    let long = Duration::from_secs(3600);
    let kept = locks.lock("a").unwrap().at_least(long).acquire().await.unwrap();
    let kept = tokio::spawn(kept.release());
    let run = tokio::spawn(locks.lock("b").unwrap().at_least(long).run(|_| async {}));
    // It has c, and waits for z.
    let set = tokio::spawn(locks.all(["c", "z"]).unwrap().acquire());
    tokio::time::sleep(Duration::from_secs(1)).await;
    assert_eq!(store.contents().len(), 4, "{:?}", store.contents());
    let close = tokio::spawn(timed(locks.clone()));
    for told in [kept.await.unwrap(), run.await.unwrap(), set.await.unwrap().map(drop)] {
        assert_eq!(store.contents().len(), 1, "the close has not ended: {told:?}");
    }
    close.await.unwrap().0.unwrap();
}
