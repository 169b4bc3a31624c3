//! The delay of tasks on this machine.

use std::{
    sync::{
        Arc,
        atomic::{AtomicU64, Ordering},
    },
    time::Duration,
};

use lock_core::Clock;
use tokio::task::JoinHandle;

const PERIOD: Duration = Duration::from_millis(10);

/// Measures how long a task that is due waits for its turn, until it is dropped.
pub struct Beat {
    micros: Arc<AtomicU64>,
    task: JoinHandle<()>,
}

impl Beat {
    pub fn start() -> Self {
        let micros = Arc::new(AtomicU64::new(0));
        let measured = micros.clone();
        let task = tokio::spawn(async move {
            loop {
                let slept = Clock::Boot.now();
                tokio::time::sleep(PERIOD).await;
                let late = Clock::Boot.now().since(slept).saturating_sub(PERIOD);
                measured.fetch_max(late.as_micros() as u64, Ordering::Relaxed);
            }
        });
        Self { micros, task }
    }

    /// The longest wait so far.
    pub fn late(&self) -> Duration {
        Duration::from_micros(self.micros.load(Ordering::Relaxed))
    }
}

impl Drop for Beat {
    fn drop(&mut self) {
        self.task.abort();
    }
}
