//! Helpers that the tests of this crate share.

#[path = "../../../tests/shared/beat.rs"]
pub mod beat;
#[path = "../../../tests/shared/bounded.rs"]
pub mod bounded;
mod emptied;
#[path = "../../../tests/shared/undisturbed.rs"]
pub mod undisturbed;

use std::{
    future::Future,
    sync::{
        Arc,
        atomic::{AtomicU64, Ordering::Relaxed},
    },
    time::Duration,
};

use lock_core::{Clock, DistributedLock, Error, LockGuard, Locks, StoreUrl};
use lock_lab::{Builder, Counters, LabError, Lent, Pool, Proxy, ZooKeeper};
use lock_zk::{
    ZkConfig, ZkLock,
    client::{Acls, Client, Connector, CreateMode},
};
use tokio::{
    sync::{OnceCell, Semaphore},
    task::JoinSet,
};

/// Longer than anything here takes on a loaded machine.
pub const PATIENCE: Duration = Duration::from_secs(60);
/// The shortest session of a lab server, and one that is kept through a short fault.
pub const SHORT: Duration = Duration::from_secs(2);
pub const CALM: &str = "?ttl=100s";

/// Servers start two at a time: each takes a core for seconds, and must not take half a minute.
pub static STARTS: Semaphore = Semaphore::const_new(2);

/// One server for the tests that neither count nor break anything.
pub async fn shared() -> &'static ZooKeeper {
    static SERVER: OnceCell<ZooKeeper> = OnceCell::const_new();
    SERVER.get_or_init(|| started(lab())).await
}

/// Runs in memory: on a disk that is busy for a second, a server forgets clients with short
/// sessions.
pub fn lab() -> Builder<ZooKeeper> {
    // An in-memory server is set up for benchmarks otherwise, and takes longer to start.
    ZooKeeper::builder().in_memory().arg("-XX:TieredStopAtLevel=1").arg(emptied::LOGIN_OF_ALL)
}

pub async fn started(builder: Builder<ZooKeeper>) -> ZooKeeper {
    let _turn = STARTS.acquire().await.unwrap();
    let server = start(|| builder.clone().start()).await.expect("a private ZooKeeper");
    // The port for TLS opens a moment after the other one.
    let connect = || tokio::net::TcpStream::connect(server.secure_addr());
    eventually("the server takes connections", async || connect().await.is_ok()).await;
    server
}

/// A machine may be too busy for a start in half a minute, though not three times in turn.
pub async fn start<T, F: Future<Output = Result<T, LabError>>>(
    mut begin: impl FnMut() -> F,
) -> Result<T, LabError> {
    for _ in 0..2 {
        match begin().await {
            Err(LabError::Start { .. }) => {}
            result => return result,
        }
    }
    begin().await
}

/// A server that no other test uses, without nodes and sessions.
pub async fn server() -> Lent<ZooKeeper> {
    static POOL: Pool<ZooKeeper> = Pool::new();
    lend(&POOL, lab()).await
}

/// Such a server that grants sessions as long as those of [`open_calm`].
pub async fn calm_server() -> Lent<ZooKeeper> {
    static POOL: Pool<ZooKeeper> = Pool::new();
    lend(&POOL, lab().tick(Duration::from_secs(5))).await
}

async fn lend(pool: &'static Pool<ZooKeeper>, builder: Builder<ZooKeeper>) -> Lent<ZooKeeper> {
    let empty = async |server: &ZooKeeper| {
        emptied::empty(server).await;
        Ok::<_, LabError>(())
    };
    let _turn = STARTS.acquire().await.unwrap();
    let start = async || start(|| builder.clone().start()).await;
    pool.lend(empty, start).await.expect("a private ZooKeeper")
}

pub async fn proxy(server: &ZooKeeper) -> Proxy {
    Proxy::start(server.addr()).await.expect("a proxy")
}

/// A lock name that no other test has.
pub fn fresh(what: &str) -> String {
    format!("{what}-{}", uuid::Uuid::new_v4().simple())
}

/// Connects.
pub async fn open(url: &str) -> Locks {
    Locks::new(in_time(|| driver(url)).await.unwrap())
}

/// Connects again if a limit of the client ran out: a machine may be too busy for it, though not
/// five times in turn. No other failure is forgiven.
pub async fn in_time<T, F: Future<Output = lock_core::Result<T>>>(
    mut connect: impl FnMut() -> F,
) -> lock_core::Result<T> {
    // What each of three hosts gets of the 3 s for all of them. No other limit is shorter.
    const SHORTEST_LIMIT: Duration = Duration::from_secs(1);
    for _ in 0..4 {
        let start = Clock::Boot.now();
        match connect().await {
            Err(error)
                if error.is_unavailable() && Clock::Boot.now().since(start) >= SHORTEST_LIMIT => {}
            result => return result,
        }
    }
    connect().await
}

/// A client with a renewal in 12.5 s, so that many clients leave time to count in. A waiter does not
/// look by itself within [`PATIENCE`].
pub async fn open_calm(server: &ZooKeeper) -> Locks {
    open(&format!("{}{CALM}", server.url())).await
}

pub async fn open_calm_via(server: &ZooKeeper, proxy: &Proxy) -> Locks {
    open(&format!("{}{CALM}", server.url_via(proxy))).await
}

pub async fn driver(url: &str) -> lock_core::Result<ZkLock> {
    ZkLock::connect(ZkConfig::from_url(&StoreUrl::parse(url).unwrap())?).await
}

pub async fn raw(server: &ZooKeeper) -> Client {
    patient().connect(&server.addr().to_string()).await.unwrap()
}

/// A client of the crate alone. Its own limit for a connect is that of the session, 6 s.
pub fn patient() -> Connector {
    Client::connector().with_session_timeout(PATIENCE)
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

/// Waits until a lock was renewed for this long. It must be held all the time.
pub async fn outlives(guard: &LockGuard, span: Duration) {
    let deadline = || Clock::Boot.now() + guard.remaining();
    let end = deadline() + span;
    eventually("it is renewed", async || {
        assert!(guard.is_valid(), "{guard:?}");
        deadline() > end
    })
    .await;
}

/// Waits for something that must happen within the test's patience.
pub async fn soon<T>(what: &str, future: impl Future<Output = T>) -> T {
    match tokio::time::timeout(PATIENCE, future).await {
        Ok(value) => value,
        Err(_) => panic!("never happened: {what}"),
    }
}

/// What callers do until there were so many grants and so many resets of their connections.
pub struct Work {
    enough: [u64; 2],
    grants: AtomicU64,
    resets: AtomicU64,
}

impl Work {
    pub fn until(grants: u64, resets: u64) -> Arc<Self> {
        let enough = [grants, resets];
        Arc::new(Self { enough, grants: AtomicU64::new(0), resets: AtomicU64::new(0) })
    }

    pub fn granted(&self) {
        self.grants.fetch_add(1, Relaxed);
    }

    pub fn goes_on(&self) -> bool {
        let [grants, resets] = self.enough;
        self.grants.load(Relaxed) < grants || self.resets.load(Relaxed) < resets
    }

    /// Breaks two connections in turn while callers work, each one `soon`: a waiter that is
    /// forgotten must not go on when it looks by itself.
    pub async fn with_resets(&self, proxies: &[Proxy; 2], mut workers: JoinSet<()>) {
        while self.goes_on() {
            let resets = self.resets.fetch_add(1, Relaxed);
            let proxy = &proxies[usize::from(resets.is_multiple_of(3))];
            match resets % 2 {
                0 => proxy.drop_next_reply(),
                _ => proxy.reset(),
            }
            tokio::time::sleep(Duration::from_millis(30 + (resets + 1) * 37 % 90)).await;
            if let Some(worker) = workers.try_join_next() {
                worker.unwrap();
            }
        }
        proxies.iter().for_each(|proxy| proxy.heal());
        all_end(workers).await;
    }
}

pub async fn all_end(mut workers: JoinSet<()>) {
    while let Some(worker) = soon("every worker ends", workers.join_next()).await {
        worker.unwrap();
    }
}

/// Starts an acquire and waits until it stands in the queue as number `position` (0 is the holder).
/// If the waiter's own client looks, that client has the answer to the entry, too.
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
    keep_each(server, [directory]).await;
}

/// Same as [`keep`], for several directories.
pub async fn keep_each(server: &ZooKeeper, directories: impl IntoIterator<Item = impl AsRef<str>>) {
    let connections = async || server.counters().await.unwrap().get("connections");
    let before = connections().await;
    let client = raw(server).await;
    let options = CreateMode::Persistent.with_acls(Acls::anyone_all());
    for directory in directories {
        client.mkdir(&format!("{}/no-entry", directory.as_ref()), &options).await.unwrap();
    }
    drop(client);
    // The end of its session is an update, which must not count.
    eventually("the client is gone", async || connections().await <= before).await;
}
