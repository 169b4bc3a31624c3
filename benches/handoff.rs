//! One name under contention, hold time zero: 16 and 64 waiters in one process, and two processes
//! of 8. What counts is hand-overs per second, real changes of the holder, and the longest wait.
//!
//! `cargo bench --features etcd,redis,zookeeper --bench handoff [-- STORE]`

mod bench;

use std::{io::Write, process::Stdio, time::Duration};

use bench::{Table, stores};
use distlock::Locks;
use lock_core::Clock;
use tokio::{
    io::AsyncReadExt,
    process::{Child, Command},
};

const TIME: Duration = Duration::from_secs(3);
const URL: &str = "DISTLOCK_BENCH_URL";

/// One turn: the fencing token, which task, and how long it waited in microseconds.
type Turn = (u64, u32, u64);

fn main() {
    if let Ok(url) = std::env::var(URL) {
        return bench::block_on(child(&url));
    }
    bench::block_on(async {
        let header = [
            "store",
            "waiters",
            "",
            "hand-overs/s",
            "p50 us",
            "longest us",
            "longest / even share",
            "requests",
            "least",
            "most",
            "floor pairs/s",
        ];
        let mut table = Table::with_header("hand-over of one name", &header);
        for store in stores() {
            for (processes, tasks) in [(1, 16), (1, 64), (2, 8)] {
                table.add_cells(measure(store, processes, tasks).await);
            }
        }
        println!("{table}");
        println!(
            "requests: per acquisition, counted by the server; floor: bare client, 1 task, no contention"
        );
    });
}

async fn measure(store: &'static str, processes: u32, tasks: u32) -> Vec<String> {
    let server = bench::start(store).await;
    let floors = bench::floor::Floor::of(store, &server.url()).await;
    let floor = bench::load(1, Duration::from_millis(500), floors[0].pair()).await;
    let before = server.counters().await.expect("counters");
    let mut turns = match processes {
        1 => contend(&distlock::connect(server.url()).await.expect("a connection"), tasks).await,
        _ => contend_in_processes(&server.url(), processes, tasks).await,
    };
    let requests =
        bench::requests(store, &server.counters().await.expect("counters").since(&before));
    turns.sort_unstable();
    let changes = turns.windows(2).filter(|pair| pair[0].1 != pair[1].1).count();
    let rate = changes as f64 / TIME.as_secs_f64();
    let all = processes * tasks;
    let even_share = f64::from(all) / rate * 1e6;
    let mut waits: Vec<u64> = turns.iter().map(|turn| turn.2).collect();
    waits.sort_unstable();
    let longest = waits.last().copied().unwrap_or_default();
    let shares: Vec<usize> =
        (0..all).map(|task| turns.iter().filter(|turn| turn.1 == task).count()).collect();
    vec![
        store.to_owned(),
        if processes == 1 { tasks.to_string() } else { format!("{processes} x {tasks}") },
        "distlock".to_owned(),
        format!("{rate:.0}"),
        waits[waits.len() / 2].to_string(),
        longest.to_string(),
        format!("{:.2}", longest as f64 / even_share),
        format!("{:.2}", requests as f64 / turns.len() as f64),
        shares.iter().min().copied().unwrap_or_default().to_string(),
        shares.iter().max().copied().unwrap_or_default().to_string(),
        format!("{:.0}", floor.rate()),
    ]
}

/// Every task takes the lock, gives it back, and comes again.
async fn contend(locks: &Locks, tasks: u32) -> Vec<Turn> {
    let started = Clock::Boot.now();
    let mut running = tokio::task::JoinSet::new();
    for task in 0..tasks {
        let lock = locks.lock("bench-handoff").expect("a name");
        running.spawn(async move {
            let mut turns = Vec::new();
            loop {
                let asked = Clock::Boot.now();
                if asked.since(started) > TIME {
                    return turns;
                }
                let guard = lock.acquire().await.expect("the lock");
                turns.push((guard.token().value(), task, bench::micros_since(asked)));
                guard.release().await.expect("a release");
            }
        });
    }
    running.join_all().await.into_iter().flatten().collect()
}

async fn contend_in_processes(url: &str, processes: u32, tasks: u32) -> Vec<Turn> {
    let mut children: Vec<Child> = (0..processes).map(|_| spawn(url, tasks)).collect();
    for child in &mut children {
        // The child says that it is connected.
        let out = child.stdout.as_mut().expect("its stdout");
        out.read_u8().await.expect("a child that is ready");
    }
    for child in &mut children {
        // Closing its stdin is the starting shot.
        child.stdin.take();
    }
    let mut turns = Vec::new();
    for (number, mut child) in (0..).zip(children) {
        let mut said = String::new();
        child
            .stdout
            .take()
            .expect("its stdout")
            .read_to_string(&mut said)
            .await
            .expect("its turns");
        turns.extend(said.lines().map(|line| {
            let mut parts = line.split(' ').map(|part| part.parse::<u64>().expect("a number"));
            let mut part = || parts.next().expect("three numbers");
            let (token, task, wait) = (part(), part(), part());
            (token, number * tasks + u32::try_from(task).expect("a small number"), wait)
        }));
    }
    turns
}

fn spawn(url: &str, tasks: u32) -> Child {
    let mut command = Command::new(std::env::current_exe().expect("this program"));
    command.env(URL, url).env("DISTLOCK_BENCH_TASKS", tasks.to_string());
    command
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .kill_on_drop(true)
        .spawn()
        .expect("a child")
}

async fn child(url: &str) {
    let tasks = std::env::var("DISTLOCK_BENCH_TASKS").expect("the number of tasks");
    let locks = distlock::connect(url).await.expect("a connection");
    let mut out = std::io::stdout().lock();
    out.write_all(b"r").and_then(|()| out.flush()).expect("a parent");
    let _ = tokio::io::stdin().read_to_end(&mut Vec::new()).await;
    for (token, task, wait) in contend(&locks, tasks.parse().expect("a number")).await {
        writeln!(out, "{token} {task} {wait}").expect("a parent");
    }
}
