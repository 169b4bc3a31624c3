//! The delay of tasks on this machine.

use std::{
    sync::{
        Arc,
        atomic::{AtomicU64, Ordering},
    },
    time::Duration,
};

use lock_core::{Clock, Instant};
use tokio::task::JoinHandle;

const PERIOD: Duration = Duration::from_millis(10);

/// Measures how long a task that is due waits for its turn, until it is dropped.
pub struct Beat {
    started: Instant,
    /// Its longest wait that is over, and when the present one has begun.
    times: Arc<[AtomicU64; 2]>,
    task: JoinHandle<()>,
}

fn micros(time: Duration) -> u64 {
    u64::try_from(time.as_micros()).expect("no test takes so long")
}

impl Beat {
    pub fn start() -> Self {
        let (started, times) = (Clock::Boot.now(), Arc::new([const { AtomicU64::new(0) }; 2]));
        let measured = times.clone();
        let task = tokio::spawn(async move {
            loop {
                let slept = Clock::Boot.now();
                measured[1].store(micros(slept.since(started)), Ordering::Release);
                tokio::time::sleep(PERIOD).await;
                let late = Clock::Boot.now().since(slept).saturating_sub(PERIOD);
                measured[0].fetch_max(micros(late), Ordering::Relaxed);
            }
        });
        Self { started, times, task }
    }

    /// The longest wait so far, also if it is not over.
    pub fn late(&self) -> Duration {
        // In this order: a wait that ends meanwhile is in one of them.
        let begun = self.times[1].load(Ordering::Acquire);
        let over = self.times[0].load(Ordering::Relaxed);
        let since = Clock::Boot.now().since(self.started) - Duration::from_micros(begun);
        Duration::from_micros(over).max(since.saturating_sub(PERIOD))
    }
}

impl Drop for Beat {
    fn drop(&mut self) {
        self.task.abort();
    }
}
