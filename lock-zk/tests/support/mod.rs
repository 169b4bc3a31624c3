//! Helpers that the tests of this crate share.
#![allow(dead_code, reason = "each test binary uses its part")]

use std::{future::Future, sync::Arc, time::Duration};

use lock_core::{Clock, DistributedLock, Error, Instant, LockGuard, Locks, StoreUrl};
use lock_lab::{Counters, Proxy, ZooKeeper};
use lock_zk::{
    ZkConfig, ZkLock,
    client::{Acls, Client, CreateMode},
};
use tokio::{sync::OnceCell, task::JoinSet};

/// Longer than anything here takes on a loaded machine.
pub const PATIENCE: Duration = Duration::from_secs(30);
/// The shortest session of a lab server, and one that is kept through a short fault.
pub const SHORT: Duration = Duration::from_secs(2);

/// One server for the tests that neither count nor break anything.
pub async fn shared() -> &'static ZooKeeper {
    static SERVER: OnceCell<ZooKeeper> = OnceCell::const_new();
    SERVER.get_or_init(server).await
}

/// Runs in memory: on a disk that is busy for a second, a server forgets clients with short
/// sessions.
pub fn lab() -> lock_lab::Builder<ZooKeeper> {
    // An in-memory server is set up for benchmarks otherwise, and takes longer to start.
    ZooKeeper::builder().in_memory().arg("-XX:TieredStopAtLevel=1")
}

pub async fn server() -> ZooKeeper {
    lab().start().await.expect("a private ZooKeeper")
}

/// A server that grants sessions as long as those of [`open_calm`].
pub async fn calm_server() -> ZooKeeper {
    lab().tick(Duration::from_secs(5)).start().await.expect("a private ZooKeeper")
}

pub async fn proxy(server: &ZooKeeper) -> Proxy {
    Proxy::start(server.addr()).await.expect("a proxy")
}

/// A lock name that no other test has.
pub fn fresh(what: &str) -> String {
    format!("{what}-{}", uuid::Uuid::new_v4().simple())
}

pub async fn open(url: &str) -> Locks {
    Locks::new(driver(url).await.unwrap())
}

/// Connects. A machine may be too busy for the limit, though not five times in turn.
pub async fn opened(url: &str) -> Locks {
    for _ in 0..4 {
        match driver(url).await {
            Err(error) if error.is_unavailable() => {}
            result => return Locks::new(result.unwrap()),
        }
    }
    open(url).await
}

/// A client with a renewal in 7.5 s, so that many clients leave time to count in.
pub async fn open_calm(server: &ZooKeeper) -> Locks {
    open(&format!("{}?ttl=60s", server.url())).await
}

pub async fn driver(url: &str) -> lock_core::Result<ZkLock> {
    ZkLock::connect(ZkConfig::from_url(&StoreUrl::parse(url).unwrap())?).await
}

pub async fn raw(server: &ZooKeeper) -> Client {
    Client::connect(&server.addr().to_string()).await.unwrap()
}

/// Creates a foreign client's entry.
pub async fn foreign(client: &Client, directory: &str, stem: &str) -> String {
    let open = Acls::anyone_all();
    let stem = format!("{directory}/{stem}");
    let options = CreateMode::EphemeralSequential.with_acls(open);
    loop {
        client.mkdir(directory, &CreateMode::Container.with_acls(open)).await.unwrap();
        match client.create(&stem, b"10.0.0.1", &options).await {
            Ok((_, sequence)) => return format!("{stem}{sequence}"),
            // The server has deleted the container, which was empty.
            Err(lock_zk::client::Error::NoNode) => {}
            Err(error) => panic!("{error}"),
        }
    }
}

pub async fn children(client: &Client, directory: &str) -> Vec<String> {
    match client.list_children(directory).await {
        Ok(mut children) => {
            children.sort();
            children
        }
        Err(lock_zk::client::Error::NoNode) => Vec::new(),
        Err(error) => panic!("{error}"),
    }
}

/// Waits for something that happens soon; panics with its name if it does not.
pub async fn eventually<F: Future<Output = bool>>(what: &str, mut look: impl FnMut() -> F) {
    let start = Clock::Boot.now();
    while !look().await {
        assert!(Clock::Boot.now().since(start) < PATIENCE, "never happened: {what}");
        tokio::time::sleep(Duration::from_millis(5)).await;
    }
}

/// Waits for something that must happen within the test's patience.
pub async fn soon<T>(what: &str, future: impl Future<Output = T>) -> T {
    match tokio::time::timeout(PATIENCE, future).await {
        Ok(value) => value,
        Err(_) => panic!("never happened: {what}"),
    }
}

/// Breaks two connections in turn until `end`. Then waits for the workers, which count their
/// grants.
pub async fn break_until(end: Instant, proxies: &[Proxy; 2], mut workers: JoinSet<u64>) {
    let mut resets = 0_u64;
    while Clock::Boot.now() < end {
        let proxy = &proxies[usize::from(resets.is_multiple_of(3))];
        match resets % 2 {
            0 => proxy.drop_next_reply(),
            _ => proxy.reset(),
        }
        resets += 1;
        tokio::time::sleep(Duration::from_millis(30 + resets * 37 % 90)).await;
    }
    proxies.iter().for_each(|proxy| proxy.heal());
    let mut grants = 0;
    while let Some(worker) = soon("every worker ends", workers.join_next()).await {
        grants += worker.unwrap();
    }
    assert!(resets > 20 && grants > 50, "{grants} grants, {resets} resets");
}

/// Starts an acquire and waits until it stands in the queue as number `position` (0 is the holder).
pub async fn queue_up(
    locks: &Locks,
    lock: lock_core::Lock,
    name: &str,
    position: usize,
) -> tokio::task::JoinHandle<lock_core::Result<LockGuard>> {
    let task = tokio::spawn(lock.acquire());
    eventually("the waiter stands in the queue", || async {
        locks.inspect(name).await.is_ok_and(|queue| queue.len() > position)
    })
    .await;
    task
}

/// Drives a driver directly where the facade would hide its behaviour.
pub fn as_dyn(driver: ZkLock) -> Arc<dyn DistributedLock> {
    Arc::new(driver)
}

pub fn is_unavailable(error: &Error) -> bool {
    matches!(error, Error::Unavailable { .. })
}

pub fn lost_its_place(error: &Error) -> bool {
    matches!(error, Error::PlaceLost { .. })
}

/// Returns what the server counted during `work`. That includes one query, and the clients' pings.
pub async fn cost<T>(server: &ZooKeeper, work: impl Future<Output = T>) -> (Counters, T) {
    let before = server.counters().await.unwrap();
    let value = work.await;
    (server.counters().await.unwrap().since(&before), value)
}

/// Returns the packets that `work` takes. A ping or a renewal may come in between, so this tries a
/// few times and takes the least.
pub async fn packets<F: Future<Output = ()>>(
    server: &ZooKeeper,
    mut work: impl FnMut() -> F,
) -> u64 {
    let mut least = u64::MAX;
    for _ in 0..5 {
        // One packet is the query's own.
        least = least.min(cost(server, work()).await.0.get("packets_received") - 1);
    }
    least
}

/// Keeps the server from deleting a lock's directory whenever it is empty: making it again costs
/// requests of its own.
pub async fn keep(server: &ZooKeeper, directory: &str) {
    let options = CreateMode::Persistent.with_acls(Acls::anyone_all());
    raw(server).await.mkdir(&format!("{directory}/no-entry"), &options).await.unwrap();
}
