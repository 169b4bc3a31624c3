//! A connection that outlives the runtime that made it, for example in a `static` that two tests
//! share: on every store, every call is an error at once, and its text names the runtime.
#![cfg(feature = "memory")]

use std::{
    fmt::Debug,
    future::Future,
    sync::{
        Arc, OnceLock,
        atomic::{AtomicUsize, Ordering},
        mpsc,
    },
    thread,
    time::Duration,
};

use distlock::{ClosedBy, Error, LockGuard, Locks, LossReason, Owner, Result};
use tokio::{
    runtime::{Builder, Runtime},
    sync::oneshot,
};

use crate::support::{Store, eventually, size};

/// Limit for immediate events.
const PATIENCE: Duration = Duration::from_secs(60);

test_on!(
    "memory" memory every_call_returns_an_error waiters_get_an_error
    another_runtime_can_use_the_connection a_runtime_can_end_during_requests
);
on_every_store!(
    every_call_returns_an_error,
    waiters_get_an_error,
    another_runtime_can_use_the_connection,
    a_runtime_can_end_during_requests,
);

/// A program's connection and the handles made from it.
struct Shared {
    locks: Locks,
    guards: Vec<LockGuard>,
    owner: Owner,
    /// The name of the lock that the owner holds.
    own: String,
}

async fn every_call_returns_an_error(store: &str) {
    let server = Store::open(store).await;
    for first in [one_thread as fn() -> Runtime, two_threads] {
        let url = server.url();
        // The server runs on the test's own runtime.
        let turns = move || {
            static_in_two_turns(&url, first());
        };
        tokio::task::spawn_blocking(turns).await.unwrap();
    }
}

/// At its end a runtime waits for tasks that are being polled. No task of a connection may keep
/// running without a pause after the connection's own tasks are gone.
async fn a_runtime_can_end_during_requests(store: &str) {
    let server = Store::open(store).await;
    let ends = size(5, 60);
    for round in 0..ends {
        let (url, (end, ended)) = (server.url(), oneshot::channel());
        // The thread is not joined: the test ends even if the runtime does not.
        thread::spawn(move || {
            ends_under_requests(&url, 24 + 420 * round / ends);
            let _ = end.send(());
        });
        soon("the runtime ends", ended).await.unwrap();
    }
}

fn ends_under_requests(url: &str, requests: usize) {
    let asked = Arc::new(AtomicUsize::new(0));
    let home = Builder::new_multi_thread().worker_threads(4).enable_all().build().unwrap();
    let locks = home.block_on(async { distlock::connect(url).await }).unwrap();
    for _ in 0..24 {
        let (locks, asked) = (locks.clone(), asked.clone());
        home.spawn(async move {
            while locks.revoke("x", uuid::Uuid::new_v4()).await.is_ok() {
                asked.fetch_add(1, Ordering::Relaxed);
                tokio::task::yield_now().await;
            }
        });
    }
    // Each round ends the runtime at another moment.
    while asked.load(Ordering::Relaxed) < requests {
        thread::yield_now();
    }
}

/// Two runtimes in turn, as two `#[tokio::test]`s.
fn static_in_two_turns(url: &str, first: Runtime) {
    let shared: OnceLock<Shared> = OnceLock::new();
    let begun = first.block_on(Shared::begin(url));
    let shared = shared.get_or_init(|| begun);
    drop(first);
    one_thread().block_on(shared.is_told());
}

impl Shared {
    async fn begin(url: &str) -> Self {
        let (locks, owner) = (distlock::connect(url).await.unwrap(), Owner::new());
        let mut guards = Vec::new();
        for name in ["a", "b", "c"] {
            guards.push(locks.lock(unique(name)).unwrap().acquire().await.unwrap());
        }
        let own = unique("own");
        guards.push(locks.lock(&own).unwrap().owner(&owner).acquire().await.unwrap());
        Self { locks, guards, owner, own }
    }

    async fn is_told(&self) {
        self.calls_are_told().await;
        self.holders_are_told().await;
        told("close", self.locks.close()).await;
        // A clone returns the error too, also if it is dropped here.
        told("a clone", self.locks.clone().names("")).await;
    }

    async fn calls_are_told(&self) {
        let Self { locks, owner, own, .. } = self;
        let free = || locks.lock("free").unwrap();
        told("acquire", free().acquire()).await;
        told("acquire with a limit", free().wait(PATIENCE * 2).acquire()).await;
        told("acquire at once", free().wait(Duration::ZERO).acquire()).await;
        told("try_acquire", free().try_acquire()).await;
        told("run", free().run(|_| async {})).await;
        told("acquire again", locks.lock(own).unwrap().owner(owner).acquire()).await;
        told("shared", locks.shared("free").unwrap().acquire()).await;
        told("permits", locks.semaphore("permits", 2).unwrap().acquire()).await;
        told("all", locks.all(["a", "b"]).unwrap().acquire()).await;
        told("try all", locks.all(["a", "b"]).unwrap().try_acquire()).await;
        let election = locks.election("election").unwrap();
        told("campaign", election.campaign("b")).await;
        told("leader", election.leader()).await;
        told("observe", election.observe()).await;
        told("inspect", locks.inspect("free")).await;
        told("names", locks.names("")).await;
        told("revoke", locks.revoke("free", uuid::Uuid::new_v4())).await;
    }

    async fn holders_are_told(&self) {
        for guard in &self.guards {
            told("renew", guard.renew()).await;
            assert_eq!(soon("lost", guard.lost()).await, LossReason::RuntimeEnded);
        }
    }
}

/// Others wait from another runtime when the first one ends. Then each call that consumes its guard
/// returns the error.
async fn waiters_get_an_error(store: &str) {
    let server = Store::open(store).await;
    let url = server.url();
    let there = Elsewhere::connect(&url);
    let locks = there.locks.clone();
    let held = there.run(|locks| async move { locks.lock("busy")?.acquire().await });
    let [released, detached, downgraded] = ["released", "detached", "downgraded"].map(|name| {
        there.run(move |locks| async move { locks.lock(name)?.acquire().await }).unwrap()
    });
    let held = held.unwrap();
    let mut leading =
        there.run(|locks| async move { locks.election("leads")?.campaign("a").await }).unwrap();
    let mut observer = locks.election("led").unwrap().observe().await.unwrap();
    assert!(soon("the first observation", observer.next()).await.unwrap().unwrap().is_none());
    let waiter = tokio::spawn(locks.lock("busy").unwrap().acquire());
    let queued = async || locks.inspect("busy").await.unwrap().len() == 2;
    eventually("it waits", queued).await;
    let work = held.held();
    let lost = tokio::spawn(async move { work.lost().await });
    tokio::task::spawn_blocking(move || drop(there)).await.unwrap();
    told("the waiter", async { waiter.await.unwrap() }).await;
    assert_eq!(soon("the loss", lost).await.unwrap(), LossReason::RuntimeEnded);
    // The driver may have ended the stream before the reason was requested.
    if let Some(last) = soon("the last observation", observer.next()).await {
        assert!(matches!(last, Err(Error::Closed { .. })), "{last:?}");
    }
    told("proclaim", leading.proclaim("b")).await;
    told("resign", leading.resign()).await;
    told("release", released.release()).await;
    told("detach", detached.detach()).await;
    let mut downgraded = downgraded;
    told("downgrade", downgraded.downgrade()).await;
    // Dropped in a foreign runtime: nothing to do, no panic.
    drop((held, downgraded, locks));
}

/// While the first runtime lives, calls from other runtimes work fully, also when those runtimes
/// end.
async fn another_runtime_can_use_the_connection(store: &str) {
    let server = Store::open(store).await;
    let there = Elsewhere::connect(&server.url());
    for turn in 0..3 {
        let locks = there.locks.clone();
        let visit = move || one_thread().block_on(visit(&locks, turn));
        tokio::task::spawn_blocking(visit).await.unwrap();
    }
    tokio::task::spawn_blocking(move || drop(there)).await.unwrap();
}

async fn visit(locks: &Locks, turn: u32) {
    let guard = soon("acquire", locks.lock("a").unwrap().acquire()).await.unwrap();
    assert_eq!(soon("inspect", locks.inspect("a")).await.unwrap().len(), 1, "turn {turn}");
    assert_eq!(soon("names", locks.names("")).await.unwrap().len(), 1, "turn {turn}");
    let busy = soon("try_acquire", locks.lock("a").unwrap().try_acquire()).await.unwrap();
    assert!(busy.is_none());
    soon("renew", guard.renew()).await.unwrap();
    soon("release", guard.release()).await.unwrap();
    let leading = locks.election("e").unwrap().campaign(format!("{turn}")).await.unwrap();
    let leader = locks.election("e").unwrap().leader().await.unwrap().expect("a leader");
    assert_eq!(leader.value, turn.to_string().into_bytes());
    leading.resign().await.unwrap();
}

/// A connection whose runtime ends when this is dropped.
struct Elsewhere {
    locks: Locks,
    runtime: Option<Arc<Runtime>>,
}

impl Elsewhere {
    fn connect(url: &str) -> Self {
        let (runtime, url) = (Arc::new(two_threads()), url.to_owned());
        let connect = async move { distlock::connect(url).await };
        let locks = on_a_thread(runtime.clone(), connect).unwrap();
        Self { locks, runtime: Some(runtime) }
    }

    /// Runs `work` in that runtime.
    fn run<T: Send + 'static, F: Future<Output = Result<T>> + Send + 'static>(
        &self,
        work: impl FnOnce(Locks) -> F,
    ) -> Result<T> {
        let runtime = self.runtime.clone().expect("it is there until it is dropped");
        on_a_thread(runtime, work(self.locks.clone()))
    }
}

impl Drop for Elsewhere {
    fn drop(&mut self) {
        // Ends the runtime on this thread, which may block.
        let runtime = self.runtime.take().and_then(Arc::into_inner);
        drop(runtime.expect("nobody else has it"));
    }
}

fn on_a_thread<T: Send + 'static>(
    runtime: Arc<Runtime>,
    work: impl Future<Output = T> + Send + 'static,
) -> T {
    let (tell, told) = mpsc::channel();
    let thread = thread::spawn(move || {
        let done = runtime.block_on(work);
        drop(runtime);
        tell.send(done).expect("the test waits for it");
    });
    let done = told.recv().expect("an answer");
    thread.join().unwrap();
    done
}

fn one_thread() -> Runtime {
    Builder::new_current_thread().enable_all().build().unwrap()
}

fn two_threads() -> Runtime {
    Builder::new_multi_thread().worker_threads(2).enable_all().build().unwrap()
}

fn unique(name: &str) -> String {
    format!("{name}/{}", uuid::Uuid::new_v4())
}

/// For a call that ends at once, or soon on a slow machine: no TTL and no wait limit passes before.
async fn soon<T>(what: &str, call: impl Future<Output = T>) -> T {
    let answer = tokio::time::timeout(PATIENCE, call).await;
    answer.unwrap_or_else(|_| panic!("{what} has not returned"))
}

async fn told<T: Debug>(what: &str, call: impl Future<Output = Result<T>>) {
    let answer = soon(what, call).await;
    let Err(error @ Error::Closed { .. }) = answer else { panic!("{what}: {answer:?}") };
    let text = error.to_string();
    for part in ["runtime that connected has ended", file!(), "connect once in each"] {
        assert!(text.contains(part), "{what}: {text}");
    }
    let Error::Closed { by, .. } = error else { unreachable!("it is that") };
    assert!(matches!(by, ClosedBy::Runtime(_)), "{what}: {by:?}");
}

/// A newcomer needs to read the store's name and the place where the program connected.
#[test]
fn the_error_names_the_runtime_that_connected() {
    let first = one_thread();
    let locks = first.block_on(async { distlock::connect("memory:").await.unwrap() });
    let place = format!("{}:{}", file!(), line!() - 1);
    drop(first);
    let error = one_thread().block_on(locks.lock("a").unwrap().acquire()).unwrap_err();
    let text = error.to_string();
    assert!(text.starts_with("memory connection is closed: "), "{text}");
    assert!(text.contains("current-thread runtime") && text.contains(&place), "{text}");
    let thread = thread::current().name().map(ToOwned::to_owned).unwrap();
    assert!(text.contains(&format!("{thread:?}")), "{text}");
}
