//! Waits in vain by virtual time: the number of diagnoses, and the effect of slow or failed ones.

use std::{
    sync::{
        Arc,
        atomic::{AtomicUsize, Ordering},
    },
    time::Duration,
};

use async_trait::async_trait;
use lock_core::{
    Attempt, Clock, Diagnosis, DistributedLock, Entry, Error, FencingToken, Guarantees, Lease,
    LockGuard, LockName, Locks, Mark, Observed, Reach, Request, Result, Ticket, TokenFloor, Wish,
};
use lock_memory::{MemoryLock, MemoryStore};
use tokio::{sync::mpsc, task::JoinSet};
use uuid::Uuid;

const LIMIT: Duration = Duration::from_secs(3);

/// A client whose diagnoses of waits in vain are slow, or fail.
#[derive(Debug)]
struct Slow {
    client: MemoryLock,
    takes: Duration,
    fails: bool,
    looks: Arc<Looks>,
}

#[derive(Debug, Default)]
struct Looks {
    sent: AtomicUsize,
    under_way: AtomicUsize,
    most: AtomicUsize,
}

#[async_trait]
#[deny(clippy::missing_trait_methods)]
impl DistributedLock for Slow {
    async fn diagnose(&self, name: &LockName, attempts: &[Uuid]) -> Result<Diagnosis> {
        let Looks { sent, under_way, most } = &*self.looks;
        sent.fetch_add(1, Ordering::SeqCst);
        most.fetch_max(under_way.fetch_add(1, Ordering::SeqCst) + 1, Ordering::SeqCst);
        tokio::time::sleep(self.takes).await;
        under_way.fetch_sub(1, Ordering::SeqCst);
        match self.fails {
            true => Err(Error::closed("memory")),
            false => self.client.diagnose(name, attempts).await,
        }
    }

    fn guarantees(&self) -> &Guarantees {
        self.client.guarantees()
    }

    fn clock(&self) -> Clock {
        self.client.clock()
    }

    fn reach(&self) -> Option<Reach> {
        self.client.reach()
    }

    async fn acquire(&self, request: Request, attempt: Attempt) -> Result<Box<dyn Lease>> {
        self.client.acquire(request, attempt).await
    }

    async fn try_all(&self, wishes: Vec<Wish>) -> Result<Option<Vec<Box<dyn Lease>>>> {
        self.client.try_all(wishes).await
    }

    async fn adopt(
        &self,
        request: Request,
        attempt: Attempt,
        ticket: Ticket,
    ) -> Result<Box<dyn Lease>> {
        self.client.adopt(request, attempt, ticket).await
    }

    async fn inspect(&self, name: &LockName) -> Result<Vec<Entry>> {
        self.client.inspect(name).await
    }

    async fn ping(&self, name: &LockName) -> Result<()> {
        self.client.ping(name).await
    }

    async fn observe(&self, name: &LockName) -> Result<mpsc::Receiver<Observed>> {
        self.client.observe(name).await
    }

    async fn names(&self, prefix: &str) -> Result<Vec<LockName>> {
        self.client.names(prefix).await
    }

    async fn revoke(&self, name: &LockName, attempt: Uuid) -> Result<bool> {
        self.client.revoke(name, attempt).await
    }

    async fn token_floor(&self) -> Result<TokenFloor> {
        self.client.token_floor().await
    }

    async fn raise_token_floor(&self, above: FencingToken) -> Result<TokenFloor> {
        self.client.raise_token_floor(above).await
    }

    async fn below_token_floor(&self, floor: TokenFloor) -> Result<Vec<(LockName, Uuid)>> {
        self.client.below_token_floor(floor).await
    }

    async fn mark(&self, name: &LockName) -> Result<Option<Mark>> {
        self.client.mark(name).await
    }

    async fn marks(&self, prefix: &str) -> Result<Vec<(LockName, Mark)>> {
        self.client.marks(prefix).await
    }

    async fn clear_mark(&self, name: &LockName) -> Result<bool> {
        self.client.clear_mark(name).await
    }

    async fn close(&self) -> Result<()> {
        self.client.close().await
    }
}

/// Returns the locks of a slow client, its looks, and another client's guard of lock `a`.
async fn busy(takes: Duration, fails: bool) -> (Locks, Arc<Looks>, LockGuard) {
    let (store, looks) = (MemoryStore::new(), Arc::new(Looks::default()));
    let others = Locks::new(store.client());
    let held = others.lock("a").unwrap().holder("the other").acquire().await.unwrap();
    let slow = Slow { client: store.client(), takes, fails, looks: looks.clone() };
    (Locks::new(slow), looks, held)
}

/// Returns the holder and the position that the end of a wait names.
fn vain(end: Result<LockGuard>) -> (Option<String>, Option<usize>) {
    match end {
        Err(Error::WaitTimeout { holder, position, .. }) => {
            (holder.and_then(|holder| holder.description), position)
        }
        other => panic!("{other:?}"),
    }
}

#[tokio::test(start_paused = true)]
async fn a_thousand_waits_that_end_together_send_two_looks() {
    let (locks, looks, _held) = busy(Duration::from_millis(10), false).await;
    let lock = locks.lock("a").unwrap().wait(LIMIT);
    let ends = JoinSet::from_iter((0..1000).map(|_| lock.acquire())).join_all().await;
    let mut places: Vec<_> = ends
        .into_iter()
        .map(vain)
        .map(|(holder, place)| {
            assert_eq!(holder.as_deref(), Some("the other"));
            place.unwrap()
        })
        .collect();
    places.sort_unstable();
    assert!(places.into_iter().eq(1..=1000));
    assert!(looks.sent.load(Ordering::SeqCst) <= 2, "{looks:?}");
}

#[tokio::test(start_paused = true)]
async fn one_look_is_under_way_at_a_time() {
    let (locks, looks, _held) = busy(Duration::from_millis(300), false).await;
    let mut waits = JoinSet::new();
    for n in 0..100 {
        waits.spawn(locks.lock("a").unwrap().wait(LIMIT + Duration::from_millis(n * 10)).acquire());
    }
    for end in waits.join_all().await {
        assert_eq!(vain(end).0.as_deref(), Some("the other"));
    }
    assert_eq!(looks.most.load(Ordering::SeqCst), 1);
    // They were sent within 1.3 s.
    assert!(looks.sent.load(Ordering::SeqCst) <= 6, "{looks:?}");
}

#[tokio::test(start_paused = true)]
async fn a_wait_ends_in_time_and_as_a_timeout_however_long_the_look_takes() {
    for (takes, fails) in [(LIMIT, false), (Duration::from_millis(10), true)] {
        let (locks, looks, _held) = busy(takes, fails).await;
        for limit in [Duration::ZERO, Duration::from_millis(1), LIMIT] {
            let started = Clock::Tokio.now();
            let end = locks.lock("a").unwrap().wait(limit).acquire().await;
            let took = Clock::Tokio.now().since(started);
            assert_eq!(vain(end), (None, None));
            assert!(took <= limit + Duration::from_millis(1010), "{took:?} for {limit:?}");
        }
        assert_eq!(looks.most.load(Ordering::SeqCst), 1);
    }
}

#[tokio::test(start_paused = true)]
async fn a_lock_that_is_granted_during_the_look_is_kept() {
    let (locks, _, held) = busy(Duration::from_millis(500), false).await;
    let waiter = tokio::spawn(locks.lock("a").unwrap().wait(LIMIT).acquire());
    tokio::time::sleep(LIMIT + Duration::from_millis(200)).await;
    held.release().await.unwrap();
    assert!(waiter.await.unwrap().unwrap().is_valid());
}
