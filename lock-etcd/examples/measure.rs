//! Measures the driver on a private etcd: requests and hand-overs, counted by the server.
//!
//! `cargo run --release -p lock-etcd --example measure [SECONDS]`

use std::{
    sync::{
        Arc,
        atomic::{AtomicU64, Ordering::Relaxed},
    },
    time::Duration,
};

use lock_core::{Clock, Locks, StoreUrl};
use lock_etcd::client::{Client, Compare, CompareOp, Txn, TxnOp};
use lock_lab::Etcd;

type Failure = Box<dyn std::error::Error + Send + Sync>;

#[tokio::main]
async fn main() -> Result<(), Failure> {
    tokio::spawn(measure()).await?
}

async fn measure() -> Result<(), Failure> {
    let seconds = std::env::args().nth(1).map_or(Ok(3), |text| text.parse())?;
    let time = Duration::from_secs(seconds);
    // In memory, like the peers' figures: a disk would be what is measured.
    let etcd = Arc::new(Etcd::builder().in_memory().start().await?);
    // First, before the allocator has anything to use again.
    hold(&etcd).await?;
    for tasks in [1, 16, 64] {
        floor(&etcd, tasks, time).await?;
        contend(&etcd, 1, tasks, tasks, time).await?;
    }
    for (clients, tasks) in [(1, 2), (1, 16), (1, 64), (1, 256), (2, 8), (16, 1), (64, 1)] {
        contend(&etcd, clients, tasks, 1, time).await?;
    }
    herd(&etcd).await
}

async fn connect(etcd: &Etcd) -> Result<Locks, Failure> {
    let config = lock_etcd::EtcdConfig::from_url(&StoreUrl::parse(&etcd.url())?)?;
    Ok(Locks::new(lock_etcd::EtcdLock::connect(config).await?))
}

/// What the bare client does: create a key, delete it.
async fn floor(etcd: &Arc<Etcd>, tasks: u64, time: Duration) -> Result<(), Failure> {
    let client = Client::connect([etcd.addr().to_string()], None).await?;
    let end = Clock::Boot.now() + time;
    let work = (0..tasks).map(|task| {
        let mut kv = client.kv_client();
        tokio::spawn(async move {
            let mut latencies = Vec::new();
            let key = format!("floor/{task}");
            while Clock::Boot.now() < end {
                let started = Clock::Boot.now();
                let txn = Txn::new()
                    .when([Compare::create_revision(&*key, CompareOp::Equal, 0)])
                    .and_then([TxnOp::put(&*key, "x", None)]);
                kv.txn(txn).await?;
                kv.delete(&*key, None).await?;
                latencies.push(Clock::Boot.now().since(started));
            }
            Ok::<_, Failure>(latencies)
        })
    });
    let work: Vec<_> = work.collect();
    let mut latencies = Vec::new();
    for work in work {
        latencies.extend(work.await??);
    }
    report(&format!("floor, {tasks} tasks"), &mut latencies, time);
    Ok(())
}

fn report(what: &str, latencies: &mut [Duration], time: Duration) {
    latencies.sort_unstable();
    let at = |part: usize| latencies.get(latencies.len() * part / 100).copied().unwrap_or_default();
    println!(
        "{what:<34} {:>7.0}/s  p50 {:>9.2?} p99 {:>9.2?} max {:>9.2?}",
        latencies.len() as f64 / time.as_secs_f64(),
        at(50),
        at(99),
        latencies.last().copied().unwrap_or_default(),
    );
}

/// `clients` with `tasks` each, that acquire and release one of `names` as fast as they can.
async fn contend(
    etcd: &Arc<Etcd>,
    clients: u64,
    tasks: u64,
    names: u64,
    time: Duration,
) -> Result<(), Failure> {
    let mut work = Vec::new();
    let (last_holder, changes) = (Arc::new(AtomicU64::new(0)), Arc::new(AtomicU64::new(0)));
    let mut connections = Vec::new();
    for _ in 0..clients {
        connections.push(connect(etcd).await?);
    }
    let before = etcd.counters().await?;
    let end = Clock::Boot.now() + time;
    for (client, locks) in connections.iter().enumerate() {
        for task in 0..tasks {
            let id = client as u64 * tasks + task + 1;
            let (last_holder, changes) = (last_holder.clone(), changes.clone());
            let lock = locks.lock(format!("measure{}", id % names))?;
            work.push(tokio::spawn(async move {
                let mut latencies = Vec::new();
                while Clock::Boot.now() < end {
                    let started = Clock::Boot.now();
                    let guard = lock.acquire().await?;
                    latencies.push(Clock::Boot.now().since(started));
                    if last_holder.swap(id, Relaxed) != id {
                        changes.fetch_add(1, Relaxed);
                    }
                    guard.release().await?;
                }
                Ok::<_, Failure>(latencies)
            }));
        }
    }
    let mut latencies = Vec::new();
    let (mut least, mut most) = (usize::MAX, 0);
    for work in work {
        let done = work.await??;
        (least, most) = (least.min(done.len()), most.max(done.len()));
        latencies.extend(done);
    }
    let spent = etcd.counters().await?.since(&before);
    let grants = latencies.len() as f64;
    report(&format!("{clients} x {tasks} tasks, {names} names"), &mut latencies, time);
    let per = |key: &str| spent.get(key) as f64 / grants;
    println!(
        "    changes of holder {:.0}/s, least/most {least}/{most}; per grant: Txn {:.3} Range {:.3} \
         DeleteRange {:.3} proposals {:.2} watch messages in {:.3} out {:.3}",
        changes.load(Relaxed) as f64 / time.as_secs_f64(),
        per("rpc.Txn"),
        per("rpc.Range"),
        per("rpc.DeleteRange"),
        per("proposals"),
        per("msg.Watch"),
        per("sent.Watch"),
    );
    Ok(())
}

/// What one release costs while others wait.
async fn herd(etcd: &Arc<Etcd>) -> Result<(), Failure> {
    for waiters in [2, 10, 100] {
        let locks = connect(etcd).await?;
        let lock = locks.lock(format!("herd{waiters}"))?;
        let guard = lock.acquire().await?;
        let waiting: Vec<_> = (0..waiters).map(|_| tokio::spawn(lock.acquire())).collect();
        while locks.inspect(format!("herd{waiters}")).await?.len() <= waiters {}
        tokio::time::sleep(Duration::from_millis(300)).await;
        let before = etcd.counters().await?;
        guard.release().await?;
        tokio::time::sleep(Duration::from_millis(300)).await;
        let woken = waiting.iter().filter(|waiter| waiter.is_finished()).count();
        println!(
            "release before {waiters} waiters: woken {woken}; {}",
            etcd.counters().await?.since(&before)
        );
        waiting.iter().for_each(|waiter| waiter.abort());
    }
    Ok(())
}

/// What locks that are held cost in memory, watched and all.
async fn hold(etcd: &Arc<Etcd>) -> Result<(), Failure> {
    const LOCKS: usize = 10_000;
    let locks = connect(etcd).await?;
    let mut guards = Vec::with_capacity(LOCKS);
    let before = resident()?;
    for n in 0..LOCKS {
        guards.push(locks.lock(format!("hold{n}"))?.acquire().await?);
    }
    tokio::time::sleep(Duration::from_millis(500)).await;
    let watchers = etcd.counters().await?.get("watchers");
    let each = resident()?.saturating_sub(before) / LOCKS;
    println!("{LOCKS} locks held: {each} B each of this process, {watchers} watches");
    Ok(())
}

/// This process's memory in bytes.
fn resident() -> Result<usize, Failure> {
    let statm = std::fs::read_to_string("/proc/self/statm")?;
    let pages: usize = statm.split(' ').nth(1).unwrap_or_default().parse()?;
    Ok(pages * 4096)
}
