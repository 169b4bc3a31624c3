//! What the benchmarks share: servers in memory, load, and tables.
#![allow(dead_code, reason = "each benchmark uses its part")]

pub mod floor;
pub mod table;

use std::{
    future::Future,
    ops::Deref,
    pin::Pin,
    sync::{Arc, Mutex},
    time::Duration,
};

use hdrhistogram::Histogram;
use lock_core::Clock;
use lock_lab::{Counters, Server};

pub use table::Table;

/// A server of its own; its data is in memory, so that no disk decides.
pub type Running = Box<dyn Deref<Target = Server> + Send + Sync>;

/// The stores that are compiled in, or the one named on the command line.
pub fn stores() -> Vec<&'static str> {
    let all: &[&str] = &[
        #[cfg(feature = "etcd")]
        "etcd",
        #[cfg(feature = "redis")]
        "redis",
        #[cfg(feature = "zookeeper")]
        "zookeeper",
    ];
    let wanted: Vec<_> = std::env::args().skip(1).filter(|arg| !arg.starts_with('-')).collect();
    if all.is_empty() {
        println!("no server's driver is compiled in; use --features etcd,redis,zookeeper");
    }
    all.iter()
        .copied()
        .filter(|store| wanted.is_empty() || wanted.iter().any(|w| w == store))
        .collect()
}

pub async fn start(store: &str) -> Running {
    let started: Result<Running, lock_lab::LabError> = match store {
        "etcd" => {
            lock_lab::Etcd::builder().in_memory().start().await.map(|s| Box::new(s) as Running)
        }
        "redis" => {
            lock_lab::Redis::builder().in_memory().start().await.map(|s| Box::new(s) as Running)
        }
        _ => {
            lock_lab::ZooKeeper::builder().in_memory().start().await.map(|s| Box::new(s) as Running)
        }
    };
    started.unwrap_or_else(|error| panic!("{error}"))
}

/// One thread for the client: client and server share the cores of this machine.
pub fn block_on<T>(work: impl Future<Output = T>) -> T {
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build();
    runtime.expect("a runtime").block_on(work)
}

/// Requests that the server counted, without what the counting itself costs.
pub fn requests(store: &str, since: &Counters) -> u64 {
    since
        .iter()
        .filter(|(what, _)| match store {
            // What scripts call is counted by the server, too; only the scripts come from clients.
            "redis" => ["cmd.evalsha", "cmd.eval", "cmd.ping", "cmd.subscribe"].contains(what),
            "etcd" => what.starts_with("msg.") && !what.contains("KeepAlive"),
            _ => *what == "packets_received",
        })
        .map(|(_, count)| count)
        .sum()
}

/// One round of work, over and over.
pub type Pair = Box<dyn Fn() -> Pin<Box<dyn Future<Output = ()> + Send>> + Send>;

/// Makes each task its work.
pub trait Load: Send + Sync {
    fn of(&self, task: usize) -> Pair;
}

impl<F: Fn(usize) -> Pair + Send + Sync> Load for F {
    fn of(&self, task: usize) -> Pair {
        self(task)
    }
}

/// What a load came to.
#[derive(Clone)]
pub struct Measured {
    pub count: u64,
    pub elapsed: Duration,
    pub micros: Histogram<u64>,
}

impl Measured {
    pub fn rate(&self) -> f64 {
        self.count as f64 / self.elapsed.as_secs_f64()
    }

    pub fn mean_micros(&self) -> f64 {
        self.micros.mean()
    }
}

/// Runs `tasks` tasks for this long.
pub async fn load(tasks: usize, time: Duration, load: Arc<dyn Load>) -> Measured {
    let micros = Arc::new(Mutex::new(Histogram::new(3).expect("three digits")));
    let started = Clock::Boot.now();
    let mut running = tokio::task::JoinSet::new();
    for task in 0..tasks {
        let (pair, micros) = (load.of(task), micros.clone());
        running.spawn(async move {
            let mut own = Histogram::<u64>::new(3).expect("three digits");
            loop {
                let sent = Clock::Boot.now();
                if sent.since(started) > time {
                    break;
                }
                pair().await;
                own.record(micros_since(sent)).expect("a range that grows");
            }
            micros.lock().unwrap().add(own).expect("the same digits");
        });
    }
    running.join_all().await;
    let elapsed = Clock::Boot.now().since(started);
    let micros = micros.lock().unwrap().clone();
    Measured { count: micros.len(), elapsed, micros }
}

pub fn micros_since(sent: lock_core::Instant) -> u64 {
    u64::try_from(Clock::Boot.now().since(sent).as_micros()).unwrap_or(u64::MAX)
}

/// The middle one.
pub fn median(mut values: Vec<f64>) -> f64 {
    values.sort_by(f64::total_cmp);
    values[values.len() / 2]
}
