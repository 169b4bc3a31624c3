//! Measures the driver against a private ZooKeeper, beside the bare client crate in the same run.
//!
//! `cargo run --release -p lock-zk --example measure [SECONDS]`

use std::{
    sync::{
        Arc, Mutex,
        atomic::{AtomicU64, Ordering},
    },
    time::Duration,
};

use lock_core::{Clock, Locks, StoreUrl};
use lock_lab::{Proxy, ZooKeeper};
use lock_zk::{
    ZkLock,
    client::{Acls, Client, CreateMode},
};

type AnyResult<T> = Result<T, Box<dyn std::error::Error + Send + Sync>>;

#[tokio::main]
async fn main() -> AnyResult<()> {
    let mut args = std::env::args().skip(1);
    let first = args.next().unwrap_or_else(|| "2".to_owned());
    if first == "contend" {
        // A second process: contend URL NAME WORKERS MILLISECONDS
        let [url, name, workers, span] = [(); 4].map(|()| args.next().unwrap_or_default());
        let span = Duration::from_millis(span.parse()?);
        let outcome = contend(&open(&url).await?, &name, workers.parse()?, span).await?;
        println!("{} {}", outcome.grants, outcome.longest.as_micros());
        return Ok(());
    }
    let span = Duration::from_millis((first.parse::<f64>()? * 1000.0) as u64);
    let server = ZooKeeper::builder().in_memory().start().await?;
    let url = server.url();
    let locks = open(&url).await?;
    // The JVM compiles what it runs often.
    pairs(&locks, 64, span).await?;
    contend(&locks, "warm", 16, span).await?;
    for tasks in [1, 64] {
        ratio(&server, &locks, tasks, span).await?;
    }
    for workers in [2, 16, 64] {
        let before = server.counters().await?;
        let outcome = contend(&locks, "hot", workers, span).await?;
        let used = server.counters().await?.since(&before);
        println!("{workers:>2} waiters: {}", outcome.describe(workers, span));
        let per = |key: &str| used.get(key) as f64 / outcome.grants as f64;
        println!(
            "            per acquisition: {:.2} packets in, {:.2} out, {:.2} updates, {:.2} watches fired",
            per("packets_received"),
            per("packets_sent"),
            per("requests.update"),
            per("fired.deleted"),
        );
    }
    two_processes(&server, &locks, span).await?;
    flights(&server).await?;
    memory(&server).await
}

/// Takes turns with the floor, so that whatever else the machine does hits both.
async fn ratio(server: &ZooKeeper, locks: &Locks, tasks: usize, span: Duration) -> AnyResult<()> {
    let (mut floors, mut pairs_done, mut ratios) = (Vec::new(), Vec::new(), Vec::new());
    for _ in 0..9 {
        let floor = floor(server, tasks, span / 4).await?;
        let ours = pairs(locks, tasks, span / 4).await?;
        floors.push(floor);
        pairs_done.push(ours);
        ratios.push(ours / floor);
    }
    let median = |mut values: Vec<f64>| {
        values.sort_by(f64::total_cmp);
        values[values.len() / 2]
    };
    println!(
        "{tasks:>2} names: floor {:.0}/s, ours {:.0}/s, ratio {:.2} (medians of 9)",
        median(floors),
        median(pairs_done),
        median(ratios)
    );
    Ok(())
}

async fn open(url: &str) -> AnyResult<Locks> {
    Ok(Locks::new(ZkLock::connect(lock_zk::ZkConfig::from_url(&StoreUrl::parse(url)?)?).await?))
}

/// What an acquire and release cannot do without: create and list together, then delete.
async fn floor(server: &ZooKeeper, tasks: usize, span: Duration) -> AnyResult<f64> {
    let client = Client::connect(&server.addr().to_string()).await?;
    let done = Arc::new(AtomicU64::new(0));
    let start = Clock::Boot.now();
    let mut running = tokio::task::JoinSet::new();
    for task in 0..tasks {
        let (client, done) = (client.clone(), done.clone());
        running.spawn(async move {
            let directory = format!("/floor/{task}");
            let persistent = CreateMode::Persistent.with_acls(Acls::anyone_all());
            client.mkdir(&directory, &persistent).await?;
            let options = CreateMode::EphemeralSequential.with_acls(Acls::anyone_all());
            let stem = format!("{directory}/_c_0123456789abcdef0123456789abcdef0123-lock-");
            while Clock::Boot.now().since(start) < span {
                let create = client.create(&stem, &[b'x'; 60], &options);
                let list = client.list_children(&directory);
                let (created, listed) = tokio::join!(create, list);
                let path = format!("{stem}{}", created?.1);
                assert_eq!(listed?.len(), 1);
                client.delete(&path, None).await?;
                done.fetch_add(1, Ordering::Relaxed);
            }
            AnyResult::Ok(())
        });
    }
    while let Some(ended) = running.join_next().await {
        ended??;
    }
    Ok(done.load(Ordering::Relaxed) as f64 / Clock::Boot.now().since(start).as_secs_f64())
}

async fn pairs(locks: &Locks, tasks: usize, span: Duration) -> AnyResult<f64> {
    let done = Arc::new(AtomicU64::new(0));
    let start = Clock::Boot.now();
    let mut running = tokio::task::JoinSet::new();
    for task in 0..tasks {
        let (lock, done) = (locks.lock(format!("name{task}"))?, done.clone());
        running.spawn(async move {
            while Clock::Boot.now().since(start) < span {
                lock.acquire().await?.release().await?;
                done.fetch_add(1, Ordering::Relaxed);
            }
            AnyResult::Ok(())
        });
    }
    while let Some(ended) = running.join_next().await {
        ended??;
    }
    Ok(done.load(Ordering::Relaxed) as f64 / Clock::Boot.now().since(start).as_secs_f64())
}

struct Outcome {
    grants: u64,
    /// The longest time in which nobody at all was granted.
    gap: Duration,
    longest: Duration,
    least: u64,
    most: u64,
}

impl Outcome {
    fn describe(&self, workers: usize, span: Duration) -> String {
        let rate = self.grants as f64 / span.as_secs_f64();
        let share = workers as f64 / rate;
        format!(
            "{rate:.0} hand-overs/s, longest wait {:.1} ms = {:.1} even shares (nobody was granted for \
             {:.1} ms once), {} to {} per worker",
            self.longest.as_secs_f64() * 1e3,
            self.longest.as_secs_f64() / share,
            self.gap.as_secs_f64() * 1e3,
            self.least,
            self.most,
        )
    }
}

/// Workers on one name. With first come, first served, and more than one of them, each grant goes
/// to somebody else than the one before.
async fn contend(locks: &Locks, name: &str, workers: usize, span: Duration) -> AnyResult<Outcome> {
    let start = Clock::Boot.now();
    let last = Arc::new(Mutex::new((start, Duration::ZERO)));
    let mut running = tokio::task::JoinSet::new();
    for _ in 0..workers {
        let (lock, last) = (locks.lock(name)?, last.clone());
        running.spawn(async move {
            let (mut grants, mut longest) = (0_u64, Duration::ZERO);
            let mut asked = Clock::Boot.now();
            while asked.since(start) < span {
                let guard = lock.acquire().await?;
                let granted = Clock::Boot.now();
                {
                    let mut last = last.lock().map_err(|error| error.to_string())?;
                    *last = (granted, last.1.max(granted.since(last.0)));
                }
                guard.release().await?;
                (grants, longest) = (grants + 1, longest.max(granted.since(asked)));
                asked = Clock::Boot.now();
            }
            AnyResult::Ok((grants, longest))
        });
    }
    let zero = Duration::ZERO;
    let mut outcome = Outcome { grants: 0, gap: zero, longest: zero, least: u64::MAX, most: 0 };
    while let Some(ended) = running.join_next().await {
        let (grants, longest) = ended??;
        outcome.grants += grants;
        outcome.longest = outcome.longest.max(longest);
        outcome.least = outcome.least.min(grants);
        outcome.most = outcome.most.max(grants);
    }
    outcome.gap = last.lock().map_err(|error| error.to_string())?.1;
    Ok(outcome)
}

async fn two_processes(server: &ZooKeeper, locks: &Locks, span: Duration) -> AnyResult<()> {
    let millis = span.as_millis().to_string();
    let mut other = tokio::process::Command::new(std::env::current_exe()?);
    other.args(["contend", &server.url(), "shared", "8", &millis]);
    let other = other.stdout(std::process::Stdio::piped()).kill_on_drop(true).spawn()?;
    let (before, ours) = (server.counters().await?, contend(locks, "shared", 8, span).await?);
    let output = other.wait_with_output().await?;
    let used = server.counters().await?.since(&before);
    let text = String::from_utf8(output.stdout)?;
    let (grants, longest) = text.trim().split_once(' ').ok_or("the other process failed")?;
    let (theirs, longest) = (grants.parse::<u64>()?, longest.parse::<u64>()?);
    let all = Outcome {
        grants: ours.grants + theirs,
        gap: ours.gap,
        longest: ours.longest.max(Duration::from_micros(longest)),
        least: ours.least,
        most: ours.most,
    };
    println!("2 processes x 8: {}", all.describe(16, span));
    println!(
        "            {} here, {theirs} there; {:.2} packets in per acquisition",
        ours.grants,
        used.get("packets_received") as f64 / all.grants as f64
    );
    Ok(())
}

/// How many round trips: a network of 20 ms each way makes one of 40 ms.
async fn flights(server: &ZooKeeper) -> AnyResult<()> {
    let proxy = Proxy::start(server.addr()).await?;
    let locks = open(&server.url_via(&proxy)).await?;
    let lock = locks.lock("far")?;
    lock.acquire().await?.release().await?;
    proxy.delay(Duration::from_millis(20));
    for _ in 0..3 {
        let start = Clock::Boot.now();
        let guard = lock.acquire().await?;
        let granted = Clock::Boot.now();
        guard.release().await?;
        let flights = |span: Duration| span.as_secs_f64() / 0.040;
        println!(
            "at 40 ms per round trip: acquire {:.2} round trips, release {:.2}",
            flights(granted.since(start)),
            flights(Clock::Boot.now().since(granted)),
        );
    }
    Ok(())
}

/// What 10,000 held locks cost this process, all in all, beside 10,000 others.
async fn memory(server: &ZooKeeper) -> AnyResult<()> {
    const LOCKS: usize = 10_000;
    let locks = open(&server.url()).await?;
    let mut held = Vec::with_capacity(2 * LOCKS);
    let mut before = 0;
    for batch in 1..=2 {
        before = resident()?;
        for chunk in 0..LOCKS / 100 {
            let names = (0..100).map(|i| format!("many{batch}-{chunk}-{i}"));
            let locks = names.map(|name| locks.lock(name)).collect::<Result<Vec<_>, _>>()?;
            let acquires = locks.iter().map(|lock| tokio::spawn(lock.acquire()));
            for acquire in acquires.collect::<Vec<_>>() {
                held.push(acquire.await??);
            }
        }
        while server.counters().await?.get("watches") < (batch * LOCKS) as u64 {
            tokio::time::sleep(Duration::from_millis(20)).await;
        }
    }
    let per = resident()?.saturating_sub(before) / LOCKS as u64;
    println!("{LOCKS} locks: {per} bytes each");
    let span = Duration::from_secs(5);
    let start = server.counters().await?;
    tokio::time::sleep(span).await;
    let used = server.counters().await?.since(&start).get("packets_received");
    println!("  idle: {:.1} packets/s", used as f64 / span.as_secs_f64());
    Ok(())
}

fn resident() -> AnyResult<u64> {
    let statm = std::fs::read_to_string("/proc/self/statm")?;
    let pages: u64 = statm.split(' ').nth(1).ok_or("no resident size")?.parse()?;
    Ok(pages * 4096)
}
