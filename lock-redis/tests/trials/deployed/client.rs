//! A client with a network and a runtime of its own.

use std::sync::{Arc, Mutex};

use async_trait::async_trait;
use lock_core::{
    Locks, StoreUrl,
    properties::{Client, Failure},
};
use lock_lab::Side;
use lock_redis::{RedisConfig, RedisLock};
use tokio::runtime::{Builder, Runtime};

use super::lab::Lab;

/// Its connections and tasks are on a runtime, which a crash ends, on a side of the network, which
/// a cut isolates.
pub struct Remote {
    locks: Locks,
    runtime: Mutex<Option<Runtime>>,
    /// `None` during the drop.
    side: Option<Side>,
    lab: Arc<Lab>,
}

impl Remote {
    pub async fn connect(lab: &Arc<Lab>, url: String) -> Result<Self, Failure> {
        let side = lab.side()?;
        let config = RedisConfig::from_url(&StoreUrl::parse(&url)?)?;
        // Its threads start on the side's thread, and so in its network.
        let runtime = || Builder::new_multi_thread().worker_threads(1).enable_all().build();
        let runtime = side.run(async move { runtime() }).await?;
        let locks = runtime.spawn(async { RedisLock::connect(config).await.map(Locks::new) });
        let locks = locks.await??;
        let runtime = Mutex::new(Some(runtime));
        Ok(Self { locks, runtime, side: Some(side), lab: lab.clone() })
    }

    fn side(&self) -> &Side {
        self.side.as_ref().expect("it is there until the drop")
    }

    fn end(&self) {
        if let Some(runtime) = self.runtime.lock().unwrap().take() {
            runtime.shutdown_background();
        }
    }
}

#[async_trait]
impl Client for Remote {
    fn locks(&self) -> &Locks {
        &self.locks
    }

    async fn cut(&self) -> Result<(), Failure> {
        Ok(self.lab.network.isolate(self.side().place())?)
    }

    async fn cut_replies(&self) -> Result<(), Failure> {
        let place = self.side().place();
        for server in self.lab.servers.places() {
            self.lab.network.deafen(place, server)?;
        }
        Ok(())
    }

    async fn heal(&self) -> Result<(), Failure> {
        Ok(self.lab.network.rejoin(self.side().place())?)
    }

    async fn crash(&self) -> Result<(), Failure> {
        self.end();
        Ok(())
    }
}

impl Drop for Remote {
    fn drop(&mut self) {
        self.end();
        self.lab.back(self.side.take().expect("it was there"));
    }
}
