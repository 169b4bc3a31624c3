//! The stage of a run: a store, its clients' places, and its faults.

use std::time::Duration;

use async_trait::async_trait;
use distlock::Locks;
use lock_lab::Side;
use tokio::{runtime::Runtime, task::JoinHandle};

use crate::chaos::plan::Step;

pub type Failure = Box<dyn std::error::Error + Send + Sync>;

/// A store with faults.
#[async_trait]
pub trait Stage: Send + Sync {
    /// The kinds of faults that it can play.
    fn kinds(&self) -> &'static [&'static str];

    /// The place of a client.
    fn home(&self, client: usize) -> Result<Home, Failure>;

    /// Connects a client. It is awaited in the client's home.
    fn connect(&self, client: usize) -> Connecting;

    /// The URL for clients in their own processes, if the store supports them.
    fn url(&self) -> Option<String> {
        None
    }

    /// Plays a fault, heals it, and returns its target.
    async fn play(&self, step: &Step) -> Result<String, Failure>;

    /// Restarts servers that ended by themselves, and returns a description of each.
    async fn mend(&self) -> Result<Vec<String>, Failure> {
        Ok(Vec::new())
    }

    /// Returns the holders, waiters and sessions left in the store.
    async fn leftovers(&self) -> Result<Vec<String>, Failure>;

    /// Longest time for which two clients may hold a lock, if the store documents early ends.
    fn early(&self) -> Duration {
        Duration::ZERO
    }

    /// Longest time until the store serves again after the last fault.
    fn recovery(&self) -> Duration {
        Duration::from_secs(10)
    }
}

pub type Connecting =
    std::pin::Pin<Box<dyn Future<Output = Result<Locks, Failure>> + Send + 'static>>;

/// One thread with its own runtime per client: a client that stands still stops no other client.
pub enum Home {
    Thread(Detached),
    Side(Side),
}

/// A runtime that may be dropped within another one. This happens when a run ends with an error.
pub struct Detached(Option<Runtime>);

impl Drop for Detached {
    fn drop(&mut self) {
        self.0.take().into_iter().for_each(Runtime::shutdown_background);
    }
}

impl Home {
    pub fn thread() -> Result<Self, Failure> {
        let mut builder = tokio::runtime::Builder::new_multi_thread();
        let runtime = builder.worker_threads(1).enable_all().build()?;
        Ok(Self::Thread(Detached(Some(runtime))))
    }

    pub fn spawn<T: Send + 'static>(
        &self,
        future: impl Future<Output = T> + Send + 'static,
    ) -> JoinHandle<T> {
        match self {
            Self::Thread(Detached(runtime)) => {
                runtime.as_ref().expect("it is dropped with its home").spawn(future)
            }
            Self::Side(side) => side.spawn(future),
        }
    }
}
