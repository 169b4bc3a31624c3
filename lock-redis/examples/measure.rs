//! Measures this driver beside the bare client crate, on a private server and in one run:
//! `cargo run --release -p lock-redis --example measure [seconds per line]`.

use std::{future::Future, time::Duration};

use lock_core::{Clock, Instant, Locks, StoreUrl};
use lock_lab::{Counters, Redis};
use lock_redis::{RedisConfig, RedisLock, client as redis};

type Result<T, E = Box<dyn std::error::Error + Send + Sync>> = std::result::Result<T, E>;

const COMPARE_AND_DELETE: &str = "if redis.call('GET', KEYS[1]) == ARGV[1] then \
                                  return redis.call('DEL', KEYS[1]) end return 0";

const HELD: usize = 10_000;

#[tokio::main]
async fn main() -> Result<()> {
    let seconds = std::env::args().nth(1).map_or(Ok(2.0), |s| s.parse())?;
    let limit = Duration::from_secs_f64(seconds);
    let server = Redis::builder().in_memory().start().await?;
    for tasks in [1, 64] {
        let mut ratios = Vec::new();
        for _ in 0..3 {
            let before = cpu(&server)?;
            let done = floor(&server.url(), tasks, limit / 2).await?;
            let floor = Pairs::new(&done, limit / 2, before, cpu(&server)?);
            let locks = connect(&server.url()).await?;
            let calls = server.counters().await?;
            let before = cpu(&server)?;
            let done = own_names(&locks, tasks, limit / 2).await?;
            let ours = Pairs::new(&done, limit / 2, before, cpu(&server)?);
            let calls = server.counters().await?.since(&calls).get("cmd.evalsha");
            let per_pair = calls as f64 / done.iter().sum::<u64>() as f64;
            println!("{tasks} tasks: floor {floor}; ours {ours}; {per_pair:.4} calls per pair");
            ratios.push(ours.per_second / floor.per_second);
        }
        ratios.sort_by(f64::total_cmp);
        println!("{tasks} tasks: throughput {:.2} of the floor's", ratios[1]);
    }
    for (title, options, clients, waiters) in [
        ("16 waiters", "", 1, 16),
        ("64 waiters", "", 1, 64),
        ("2 clients x 8 waiters", "", 2, 16),
        ("16 pollers", "?mode=simple", 1, 16),
    ] {
        let mut locks = Vec::new();
        for _ in 0..clients {
            locks.push(connect(&format!("{}{options}", server.url())).await?);
        }
        let before = server.counters().await?;
        let waits = one_name(&locks, waiters, limit).await?;
        report(title, &waits, limit, &server.counters().await?.since(&before));
    }
    let locks = connect(&server.url()).await?;
    let before = resident()?;
    let mut guards = Vec::with_capacity(HELD);
    for i in 0..HELD {
        guards.push(locks.lock(format!("held-{i}"))?.acquire().await?);
    }
    println!("{HELD} locks held: {} bytes of this process per lock", (resident()? - before) / HELD);
    Ok(())
}

/// How many bytes of memory this process uses.
fn resident() -> Result<usize> {
    let pages = std::fs::read_to_string("/proc/self/statm")?;
    let resident: usize = pages.split(' ').nth(1).unwrap_or_default().parse()?;
    Ok(resident * 4096)
}

async fn connect(url: &str) -> Result<Locks> {
    let config = RedisConfig::from_url(&StoreUrl::parse(url)?)?;
    Ok(Locks::new(RedisLock::connect(config).await?))
}

/// What acquire and release cost. On a busy machine, processor time says more than the rate.
struct Pairs {
    per_second: f64,
    client_micros: f64,
    server_micros: f64,
}

impl Pairs {
    fn new(done: &[u64], limit: Duration, before: [f64; 2], after: [f64; 2]) -> Self {
        let done = done.iter().sum::<u64>() as f64;
        let micros = |i: usize| (after[i] - before[i]) * 1e6 / done;
        Self {
            per_second: done / limit.as_secs_f64(),
            client_micros: micros(0),
            server_micros: micros(1),
        }
    }
}

impl std::fmt::Display for Pairs {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        let Self { per_second, client_micros, server_micros } = self;
        write!(f, "{per_second:.0}/s (client {client_micros:.1} us, server {server_micros:.1} us)")
    }
}

/// The processor seconds that this process and the server have used.
fn cpu(server: &Redis) -> Result<[f64; 2]> {
    let of = |pid: u32| -> Result<f64> {
        let stat = std::fs::read_to_string(format!("/proc/{pid}/stat"))?;
        let fields = stat.rsplit(") ").next().unwrap_or_default();
        let ticks: Vec<f64> =
            fields.split(' ').skip(11).take(2).map(str::parse).collect::<Result<_, _>>()?;
        Ok(ticks.iter().sum::<f64>() / 100.0)
    };
    Ok([of(std::process::id())?, of(server.pid())?])
}

/// SET NX PX, then compare-and-delete, with nothing around them.
async fn floor(url: &str, tasks: usize, limit: Duration) -> Result<Vec<u64>> {
    use redis::IntoConnectionInfo;
    let tcp = redis::io::tcp::TcpSettings::default().set_nodelay(true);
    let client = redis::Client::open(url.into_connection_info()?.set_tcp_settings(tcp))?;
    let mut connection = client.get_multiplexed_async_connection().await?;
    redis::cmd("SCRIPT").arg("LOAD").arg(COMPARE_AND_DELETE).exec_async(&mut connection).await?;
    let script = redis::Script::new(COMPARE_AND_DELETE);
    side_by_side(tasks, limit, |task, end| {
        let (mut connection, hash) = (connection.clone(), script.get_hash().to_owned());
        let (name, token) = (format!("floor-{task}"), format!("{:032}:{task:016}", 0));
        async move {
            let mut done = 0;
            while Clock::Boot.now() < end {
                let mut set = redis::cmd("SET");
                set.arg(&name).arg(&token).arg("NX").arg("PX").arg(15000);
                let _: String = set.query_async(&mut connection).await?;
                let mut delete = redis::cmd("EVALSHA");
                delete.arg(&hash).arg(1).arg(&name).arg(&token);
                let _: i64 = delete.query_async(&mut connection).await?;
                done += 1;
            }
            Ok(done)
        }
    })
    .await
}

async fn own_names(locks: &Locks, tasks: usize, limit: Duration) -> Result<Vec<u64>> {
    side_by_side(tasks, limit, |task, end| {
        let locks = locks.clone();
        async move {
            let lock = locks.lock(format!("ours-{task}"))?;
            let mut done = 0;
            while Clock::Boot.now() < end {
                lock.acquire().await?.release().await?;
                done += 1;
            }
            Ok(done)
        }
    })
    .await
}

/// How long each waiter waited, each time.
async fn one_name(locks: &[Locks], waiters: usize, limit: Duration) -> Result<Vec<Vec<Duration>>> {
    side_by_side(waiters, limit, |task, end| {
        let locks = locks[task % locks.len()].clone();
        async move {
            let lock = locks.lock("shared")?;
            let mut waits = Vec::new();
            while Clock::Boot.now() < end {
                let start = Clock::Boot.now();
                let guard = lock.acquire().await?;
                waits.push(Clock::Boot.now().since(start));
                guard.release().await?;
            }
            Ok(waits)
        }
    })
    .await
}

async fn side_by_side<T, F>(
    tasks: usize,
    limit: Duration,
    work: impl Fn(usize, Instant) -> F,
) -> Result<Vec<T>>
where
    T: Send + 'static,
    F: Future<Output = Result<T>> + Send + 'static,
{
    let end = Clock::Boot.now() + limit;
    let running: Vec<_> = (0..tasks).map(|task| tokio::spawn(work(task, end))).collect();
    let mut results = Vec::new();
    for task in running {
        results.push(task.await??);
    }
    Ok(results)
}

fn report(title: &str, waits: &[Vec<Duration>], limit: Duration, calls: &Counters) {
    let total: usize = waits.iter().map(Vec::len).sum();
    let longest = waits.iter().flatten().max().copied().unwrap_or_default();
    let share = limit.mul_f64(waits.len() as f64 / total as f64);
    let (least, most) = (waits.iter().map(Vec::len).min(), waits.iter().map(Vec::len).max());
    println!(
        "{title}: {:.0} hand-overs/s, longest wait {longest:?} (even share {share:?}), least {} most {}, per acquisition: {:.3} requests, {:.3} pushes",
        total as f64 / limit.as_secs_f64(),
        least.unwrap_or_default(),
        most.unwrap_or_default(),
        calls.get("cmd.evalsha") as f64 / total as f64,
        calls.get("cmd.publish") as f64 / total as f64,
    );
}
