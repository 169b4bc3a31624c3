//! Parts that the benchmarks share: servers in memory, load, and tables.

pub mod bare;
pub mod cpu;
pub mod store;
pub mod table;

use std::{
    future::Future,
    pin::Pin,
    sync::{Arc, Mutex},
    time::Duration,
};

use hdrhistogram::Histogram;
use lock_core::Clock;
use lock_lab::AnyStore;

pub use cpu::Cpu;
pub use table::Table;

/// Runs the clients on one thread: client and server share the cores of this machine.
pub fn block_on<T>(work: impl Future<Output = T>) -> T {
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build();
    runtime.expect("a runtime").block_on(work)
}

/// One round of work, which a task repeats.
pub type Pair = Box<dyn Fn() -> Pin<Box<dyn Future<Output = ()> + Send>> + Send>;

/// Makes the work of each task.
pub trait Load: Send + Sync {
    /// The work of one task.
    fn of(&self, task: usize) -> Pair;
}

impl<F: Fn(usize) -> Pair + Send + Sync> Load for F {
    fn of(&self, task: usize) -> Pair {
        self(task)
    }
}

/// Result of a load.
#[derive(Clone)]
pub struct Measured {
    /// How many rounds.
    pub count: u64,
    /// The time of all of them.
    pub elapsed: Duration,
    /// The time of each, in microseconds.
    pub micros: Histogram<u64>,
    /// Processor time of all of them.
    pub cpu: Cpu,
}

impl Measured {
    /// Rounds per second.
    pub fn rate(&self) -> f64 {
        self.count as f64 / self.elapsed.as_secs_f64()
    }

    /// Average time of a round, in microseconds.
    pub fn mean_micros(&self) -> f64 {
        self.micros.mean()
    }
}

/// Runs `tasks` tasks for the duration `time`.
pub async fn load(store: &AnyStore, tasks: usize, time: Duration, load: Arc<dyn Load>) -> Measured {
    let before = Cpu::used(store);
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
    Measured { count: micros.len(), elapsed, micros, cpu: Cpu::used(store).since(before) }
}

/// Microseconds since then.
pub fn micros_since(sent: lock_core::Instant) -> u64 {
    u64::try_from(Clock::Boot.now().since(sent).as_micros()).unwrap_or(u64::MAX)
}

/// The median.
pub fn median(mut values: Vec<f64>) -> f64 {
    values.sort_by(f64::total_cmp);
    values[values.len() / 2]
}
