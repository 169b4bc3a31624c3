//! The token floor is raised while requests are under way. Tokens of a name rise with its grants,
//! even if the raise stops after writing the record.

use std::{
    sync::{Arc, Mutex},
    time::Duration,
};

use lock_core::{FencingToken, Kind, LockGuard, Locks, Request};
use lock_lab::{Etcd, Proxy};
use tokio::task::JoinHandle;

use crate::support::*;

/// Long enough that nothing expires during a test.
const TTL: Duration = Duration::from_secs(60);

/// Does only the first step of a raise. Returns the floor.
async fn raise(operator: &Locks) -> FencingToken {
    let newest = operator.token_floor().await.unwrap().newest.value();
    let floor = FencingToken::new(newest + 1_000_000);
    operator.driver().raise_token_floor(floor).await.unwrap();
    floor
}

/// A client behind a proxy, and two others.
struct Scene {
    etcd: Etcd,
    proxy: Proxy,
    late: Locks,
    other: Locks,
    /// Inspects, and raises the floor.
    operator: Locks,
    /// The tokens in the order of the grants.
    granted: Arc<Mutex<Vec<FencingToken>>>,
}

impl Scene {
    async fn new() -> Self {
        let etcd = etcd().await;
        let (late, proxy) = behind_proxy(&etcd, "?ttl=60s").await;
        let url = format!("{}?ttl=60s", etcd.url());
        let (other, operator) = (locks(&url).await, locks(&url).await);
        // Makes a session for each client.
        for client in [&late, &other, &operator] {
            client.lock("x").unwrap().acquire().await.unwrap().release().await.unwrap();
        }
        Self { etcd, proxy, late, other, operator, granted: Arc::default() }
    }

    /// Runs `work` until it has an entry but no answer. Then another client queues behind it, and
    /// the floor is raised.
    async fn overtake<T: Send + 'static>(
        &self,
        work: impl Future<Output = T> + Send + 'static,
    ) -> (FencingToken, T) {
        self.proxy.half_open();
        let work = tokio::spawn(work);
        until_queued(&self.operator, "x", 1).await;
        let behind = self.passer(&self.other);
        until_queued(&self.operator, "x", 2).await;
        let floor = raise(&self.operator).await;
        self.proxy.reset();
        self.proxy.heal();
        let done = soon(work).await.unwrap();
        soon(behind).await.unwrap();
        (floor, done)
    }

    /// Takes the lock in a task, and gives it back.
    fn passer(&self, client: &Locks) -> JoinHandle<()> {
        let (acquire, granted) = (client.lock("x").unwrap().acquire(), self.granted.clone());
        tokio::spawn(async move { pass(acquire.await.unwrap(), &granted).await })
    }

    fn granted(&self) -> Vec<FencingToken> {
        self.granted.lock().unwrap().clone()
    }
}

async fn pass(guard: LockGuard, granted: &Mutex<Vec<FencingToken>>) {
    assert!(guard.is_valid());
    granted.lock().unwrap().push(guard.token());
    guard.release().await.unwrap();
}

fn assert_rising(granted: &[FencingToken], floor: FencingToken) {
    assert!(granted.windows(2).all(|two| two[0] < two[1]), "{granted:?}, above {floor}");
    assert!(*granted.last().unwrap() > floor, "{granted:?}, above {floor}");
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn an_entry_that_is_overtaken_goes_behind_those_it_came_before() {
    for leads in [false, true] {
        let scene = Scene::new().await;
        let (lock, granted) = (scene.late.lock("x").unwrap(), scene.granted.clone());
        let election = scene.late.election("x").unwrap();
        let work = async move {
            if !leads {
                return pass(lock.acquire().await.unwrap(), &granted).await;
            }
            let leading = election.campaign("late").await.unwrap();
            granted.lock().unwrap().push(leading.token());
            leading.resign().await.unwrap();
        };
        let (floor, ()) = scene.overtake(work).await;
        let granted = scene.granted();
        assert_eq!(granted.len(), 2);
        assert_rising(&granted, floor);
        until_clean(&scene.etcd).await;
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_try_that_is_overtaken_finds_those_behind_it() {
    let scene = Scene::new().await;
    let (trying, granted) = (scene.late.lock("x").unwrap(), scene.granted.clone());
    let work = async move {
        // Otherwise the other client has it.
        if let Some(guard) = trying.try_acquire().await.unwrap() {
            pass(guard, &granted).await;
        }
    };
    let (_, ()) = scene.overtake(work).await;
    let granted = scene.granted();
    assert!(granted.windows(2).all(|two| two[0] < two[1]), "{granted:?}");
    until_clean(&scene.etcd).await;
}

/// One transaction makes all entries of a set, so all are too old.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn all_names_of_a_set_are_entered_anew() {
    let scene = Scene::new().await;
    let (set, granted) = (scene.late.all(["x", "y"]).unwrap(), scene.granted.clone());
    let work = async move {
        let guard = set.acquire().await.unwrap();
        assert!(guard.is_valid());
        granted.lock().unwrap().push(guard.get("x").unwrap().token());
        let other = guard.get("y").unwrap().token();
        guard.release().await.unwrap();
        other
    };
    let (floor, other) = scene.overtake(work).await;
    assert_eq!(scene.granted().len(), 2);
    assert_rising(&scene.granted(), floor);
    assert!(other > floor);
    until_clean(&scene.etcd).await;
}

/// The second try knows the floor, and finds the entry that the first one has made below it.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn an_upgrade_that_was_given_up_counts_from_the_floor_that_it_was_made_with() {
    let scene = Scene::new().await;
    let late = driver(&format!("{}?ttl=60s", scene.etcd.url_via(&scene.proxy))).await;
    let mut request = Request::new(name("x"), TTL);
    request.kind = Kind::Shared;
    let lease = acquire(&late, request).await;
    let upgraded = || async {
        let queue = scene.operator.inspect("x").await.unwrap();
        queue.len() == 1 && queue[0].kind == Kind::Exclusive
    };
    scene.proxy.half_open();
    tokio::select! {
        done = lease.try_upgrade() => panic!("without an answer: {done:?}"),
        () = until("it is upgraded", upgraded) => {}
    }
    let behind = scene.passer(&scene.other);
    until_queued(&scene.operator, "x", 2).await;
    let floor = raise(&scene.operator).await;
    scene.proxy.reset();
    scene.proxy.heal();
    let knows = acquire(&late, Request::new(name("y"), TTL)).await;
    assert!(knows.token() > floor);
    assert!(soon(lease.try_upgrade()).await.unwrap());
    let token = lease.token();
    assert_eq!(scene.operator.inspect("x").await.unwrap()[0].holder.token, Some(token));
    lease.release().await.unwrap();
    soon(behind).await.unwrap();
    assert!(scene.granted()[0] > token, "{:?} after {token}", scene.granted());
    knows.release().await.unwrap();
    until_clean(&scene.etcd).await;
}
