//! One name under contention, hold time zero: 16 and 64 waiters in one process, and two processes
//! of 8. Measures hand-overs per second, real changes of the holder, and the longest wait. The wait
//! is given as time, and as turns of other tasks: an exact count that pauses of the machine do not
//! change.
//!
//! `cargo bench -p distlock-benches --features all --bench handoff [-- STORE]`

use std::{io::Write, process::Stdio, time::Duration};

use bench::{Table, store, table::known};
use distlock::Locks;
use hdrhistogram::Histogram;
use lock_core::{Clock, Instant};
use lock_lab::{AnyStore, Counters};
use tokio::{
    io::AsyncReadExt,
    process::{Child, Command},
};

const TIME: Duration = Duration::from_secs(3);
/// Not measured: it sets up sessions, watches and scripts, as in a program that runs already.
const WARM_UP: Duration = Duration::from_millis(500);
const URL: &str = "DISTLOCK_BENCH_URL";

/// One turn: the fencing token, the task, and the times of its request and its grant, in
/// microseconds of the machine's clock.
#[derive(Clone, Copy, Eq, Ord, PartialEq, PartialOrd)]
struct Turn {
    token: u64,
    task: u32,
    asked: u64,
    granted: u64,
}

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
            "longest in turns / waiters",
            "longest pause us",
            "requests",
            "least",
            "most",
            "bare pairs/s",
            "bare longest us",
        ];
        let mut table = Table::with_header("hand-over of one name", &header);
        for store in store::all() {
            for (processes, tasks) in [(1, 16), (1, 64), (2, 8)] {
                table.add_cells(measure(store, processes, tasks).await);
            }
        }
        println!("{table}");
        println!(
            "turns: of other tasks between two of one; pause: between any two grants; requests: per \
             acquisition, counted by the server (in a database, statements); bare: the bare client, 1 task, no contention"
        );
    });
}

async fn measure(store: &'static str, processes: u32, tasks: u32) -> Vec<String> {
    let server = AnyStore::open_in_memory(store).await;
    let bare = bench::bare::Bare::of(store, &server.url()).await;
    let bare = bench::load(&server, 1, TIME, bare[0].pair()).await;
    let (turns, counted) = match processes {
        1 => {
            let locks = distlock::connect(server.url()).await.expect("a connection");
            contend(&locks, tasks, WARM_UP).await;
            let before = store::counters(&server).await;
            (contend(&locks, tasks, TIME).await, before)
        }
        _ => contend_in_processes(&server, processes, tasks).await,
    };
    let counted = store::counters(&server).await.since(&counted);
    let all = processes * tasks;
    let result = Contest::of(turns, all);
    vec![
        store.to_owned(),
        if processes == 1 { tasks.to_string() } else { format!("{processes} x {tasks}") },
        "distlock".to_owned(),
        format!("{:.0}", result.rate),
        result.waits.value_at_quantile(0.5).to_string(),
        result.waits.max().to_string(),
        format!("{:.2}", result.waits.max() as f64 / (f64::from(all) / result.rate * 1e6)),
        format!("{:.2}", result.most_turns as f64 / f64::from(all)),
        result.pause.to_string(),
        known(store::per_time(store, &counted, result.waits.len())),
        result.least.to_string(),
        result.most.to_string(),
        format!("{:.0}", bare.rate()),
        bare.micros.max().to_string(),
    ]
}

/// Result of a contest.
struct Contest {
    /// Real changes of the holder per second.
    rate: f64,
    waits: Histogram<u64>,
    /// The largest number of other tasks' turns between two turns of one task.
    most_turns: usize,
    /// The longest time between two grants, in microseconds.
    pause: u64,
    /// Turns of the task with the fewest, and of the task with the most.
    least: usize,
    most: usize,
}

impl Contest {
    fn of(mut turns: Vec<Turn>, tasks: u32) -> Self {
        turns.sort_unstable();
        let changes = turns.windows(2).filter(|pair| pair[0].task != pair[1].task).count();
        let mut waits = Histogram::new(3).expect("three digits");
        for turn in &turns {
            waits.record(turn.granted.saturating_sub(turn.asked)).expect("a range that grows");
        }
        let pauses = turns.windows(2).map(|pair| pair[1].granted.saturating_sub(pair[0].granted));
        let of_task = |task| turns.iter().enumerate().filter(move |(_, turn)| turn.task == task);
        let places = |task| of_task(task).map(|(place, _)| place).collect::<Vec<_>>();
        let gaps = |task| places(task).windows(2).map(|pair| pair[1] - pair[0]).max();
        let shares = (0..tasks).map(|task| of_task(task).count());
        Self {
            rate: changes as f64 / TIME.as_secs_f64(),
            waits,
            most_turns: (0..tasks).filter_map(gaps).max().unwrap_or_default(),
            pause: pauses.max().unwrap_or_default(),
            least: shares.clone().min().unwrap_or_default(),
            most: shares.max().unwrap_or_default(),
        }
    }
}

/// Every task takes the lock, gives it back, and starts again.
async fn contend(locks: &Locks, tasks: u32, time: Duration) -> Vec<Turn> {
    let started = Clock::Boot.now();
    let mut running = tokio::task::JoinSet::new();
    for task in 0..tasks {
        let lock = locks.lock("bench-handoff").expect("a name");
        running.spawn(async move {
            let mut turns = Vec::new();
            loop {
                let asked = Clock::Boot.now();
                if asked.since(started) > time {
                    return turns;
                }
                let guard = lock.acquire().await.expect("the lock");
                let (token, granted) = (guard.token().value(), micros(Clock::Boot.now()));
                turns.push(Turn { token, task, asked: micros(asked), granted });
                guard.release().await.expect("a release");
            }
        });
    }
    running.join_all().await.into_iter().flatten().collect()
}

/// Microseconds of the machine's clock, which is the same for all processes.
fn micros(at: Instant) -> u64 {
    u64::try_from(at.since(Instant::default()).as_micros()).unwrap_or(u64::MAX)
}

/// Returns the turns, and the server's counters from before the first of them.
async fn contend_in_processes(
    server: &AnyStore,
    processes: u32,
    tasks: u32,
) -> (Vec<Turn>, Counters) {
    let mut children: Vec<Child> = (0..processes).map(|_| spawn(&server.url(), tasks)).collect();
    for child in &mut children {
        // The child reports that it has warmed up.
        let out = child.stdout.as_mut().expect("its stdout");
        out.read_u8().await.expect("a child that is ready");
    }
    let before = store::counters(server).await;
    for child in &mut children {
        // Closing a child's stdin starts its measurement.
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
            let mut part = || parts.next().expect("four numbers");
            let (token, task) = (part(), u32::try_from(part()).expect("a small number"));
            Turn { token, task: number * tasks + task, asked: part(), granted: part() }
        }));
    }
    (turns, before)
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
    let tasks = tasks.parse().expect("a number");
    let locks = distlock::connect(url).await.expect("a connection");
    contend(&locks, tasks, WARM_UP).await;
    let mut out = std::io::stdout().lock();
    out.write_all(b"r").and_then(|()| out.flush()).expect("a parent");
    let _ = tokio::io::stdin().read_to_end(&mut Vec::new()).await;
    for Turn { token, task, asked, granted } in contend(&locks, tasks, TIME).await {
        writeln!(out, "{token} {task} {asked} {granted}").expect("a parent");
    }
}
