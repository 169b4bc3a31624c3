//! Ways to sell.

use std::{
    sync::{Arc, Mutex},
    time::Duration,
};

use distlock::{Lock, LockGuard, Locks, Result};

use crate::{
    args::Args,
    processes,
    shop::{Sale, Shop},
};

type Failure = Box<dyn std::error::Error + Send + Sync>;

/// Duration of a sale without a stall.
const THINK: Duration = Duration::from_millis(3);

#[derive(Clone, Copy, Eq, PartialEq)]
pub enum Scenario {
    NoLock,
    BrokenLock,
    Distlock,
    DistlockFenced,
    ProcessesNoLock,
    Processes,
}

impl Scenario {
    /// The scenarios for a store. Several processes cannot share the store in memory.
    pub fn of(store: &str) -> impl Iterator<Item = Self> {
        let here = [Self::NoLock, Self::BrokenLock, Self::Distlock, Self::DistlockFenced];
        let processes = [Self::ProcessesNoLock, Self::Processes];
        here.into_iter().chain(processes.into_iter().filter(move |_| store != "memory"))
    }

    pub fn title(self) -> &'static str {
        match self {
            Self::NoLock => "(a) no lock",
            Self::BrokenLock => "(b) fixed TTL, bare DEL",
            Self::Distlock => "(c) distlock",
            Self::DistlockFenced => "(d) distlock, paused, fenced stock",
            Self::ProcessesNoLock => "(e) processes, no lock",
            Self::Processes => "(f) processes, distlock",
        }
    }

    /// Whether an oversold stock means that distlock is broken.
    pub fn must_hold(self) -> bool {
        matches!(self, Self::Distlock | Self::DistlockFenced | Self::Processes)
    }

    /// Sells everything with all workers.
    pub async fn play(self, args: &Args, url: &str) -> std::result::Result<Sale, Failure> {
        match self {
            Self::ProcessesNoLock => processes::play(args, None).await,
            Self::Processes => processes::play(args, Some(url)).await,
            _ => Ok(self.play_here(args, url).await?),
        }
    }

    async fn play_here(self, args: &Args, url: &str) -> Result<Sale> {
        let shop = Shop::open(args.stock, self.title());
        let locks = distlock::connect(url).await?;
        let counter = Counter::new(&locks)?;
        let mut workers = tokio::task::JoinSet::new();
        for _ in 0..args.workers {
            let (shop, counter, url) = (shop.clone(), counter.clone(), url.to_owned());
            match self {
                Self::NoLock => workers.spawn(async move { no_lock(shop, counter).await }),
                Self::BrokenLock => workers.spawn(async move { broken(shop, counter).await }),
                Self::DistlockFenced => workers.spawn_blocking(move || paused(&shop, &url)),
                _ => workers.spawn(async move { with_distlock(shop, counter).await }),
            };
        }
        while let Some(worker) = workers.join_next().await {
            // A worker that panics is a bug in this example.
            worker.expect("a worker")?;
        }
        Ok(shop.close())
    }
}

/// The lock of the shop's counter, and the duration of a stall: longer than the TTL.
#[derive(Clone)]
struct Counter {
    lock: Lock,
    stall: Duration,
    /// The entry in the store under the lock's name, for the broken lock: its bare DEL deletes any
    /// entry.
    key: Arc<Mutex<Option<LockGuard>>>,
}

impl Counter {
    fn new(locks: &Locks) -> Result<Self> {
        let guarantees = locks.guarantees();
        // Longer than a slow disk or server takes for one answer.
        let least = Duration::from_secs(if guarantees.store == "memory" { 1 } else { 2 });
        let ttl = (*guarantees.ttl.start()).max(least);
        let stall = ttl + guarantees.expiry_slack + ttl / 2;
        Ok(Self { lock: locks.lock("oversell/stock")?.ttl(ttl), stall, key: Arc::default() })
    }

    async fn think(&self, shop: &Shop) {
        let stalls = shop.stalls();
        tokio::time::sleep(if stalls { self.stall } else { THINK }).await;
    }
}

async fn no_lock(shop: Shop, counter: Counter) -> Result<()> {
    loop {
        let left = shop.read();
        if left == 0 {
            return Ok(());
        }
        counter.think(&shop).await;
        shop.write(left - 1);
    }
}

/// The article's lock: it expires while its holder stalls. A worker that finishes deletes the key,
/// even if the next holder owns it by then.
async fn broken(shop: Shop, counter: Counter) -> Result<()> {
    let lock = counter.lock.clone().fixed_term();
    loop {
        let guard = lock.acquire().await?;
        *counter.key.lock().unwrap() = Some(guard);
        let left = shop.read();
        if left > 0 {
            counter.think(&shop).await;
            shop.write(left - 1);
        }
        drop(counter.key.lock().unwrap().take());
        if left == 0 {
            return Ok(());
        }
    }
}

/// The watchdog renews the lock while its holder stalls.
async fn with_distlock(shop: Shop, counter: Counter) -> Result<()> {
    loop {
        let sell = async |_| {
            let left = shop.read();
            if left > 0 {
                counter.think(&shop).await;
                shop.write(left - 1);
            }
            left
        };
        if counter.lock.run(sell).await? == 0 {
            return Ok(());
        }
    }
}

/// A worker with its own runtime. A stall stops the whole runtime with its watchdog, as in a paused
/// process. The worker does not check whether its lock is still valid.
fn paused(shop: &Shop, url: &str) -> Result<()> {
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build();
    runtime.expect("a runtime for the worker").block_on(async {
        let counter = Counter::new(&distlock::connect(url).await?)?;
        loop {
            let guard = counter.lock.acquire().await?;
            let token = guard.token();
            let left = match shop.read_fenced(token) {
                Ok(0) => return guard.release().await,
                Ok(left) => left,
                // The lock was lost before the read. Next customer.
                Err(_stale) => continue,
            };
            std::thread::sleep(if shop.stalls() { counter.stall } else { THINK });
            // A late write is rejected and counted.
            let _ = shop.write_fenced(token, left - 1);
        }
    })
}
