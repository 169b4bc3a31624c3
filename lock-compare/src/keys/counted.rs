//! Keys whose commands are counted.

use std::{
    sync::{
        Arc,
        atomic::{AtomicU64, Ordering::Relaxed},
    },
    time::Duration,
};

use async_trait::async_trait;
use tokio::sync::watch;

use crate::{Failure, KeySpace, Keys, Nature};

/// Keys that count their clients' commands. Cheap to clone. All clones count together.
#[derive(Clone)]
pub struct Counted {
    keys: Arc<dyn KeySpace>,
    sent: Sent,
}

/// The number of commands, and of notifications of a deletion.
#[derive(Clone, Debug, Default)]
pub struct Sent {
    commands: Arc<AtomicU64>,
    wakes: Arc<AtomicU64>,
    /// Requests for a key that another client has.
    refused: Arc<watch::Sender<u64>>,
}

impl Sent {
    /// Returns the number of commands so far. A script counts as one.
    pub fn commands(&self) -> u64 {
        self.commands.load(Relaxed)
    }

    /// Returns the number of notifications to watching clients.
    pub fn wakes(&self) -> u64 {
        self.wakes.load(Relaxed)
    }

    /// Returns how often a key was refused so far, because another client had it.
    pub fn refused(&self) -> u64 {
        *self.refused.borrow()
    }

    /// Waits until keys were refused this often.
    pub async fn until_refused(&self, times: u64) {
        let mut refused = self.refused.subscribe();
        // The sender lives as long as `self`.
        let _ = refused.wait_for(|count| *count >= times).await;
    }

    fn command(&self) {
        self.commands.fetch_add(1, Relaxed);
    }

    fn taken(&self, ours: bool) {
        self.command();
        if !ours {
            self.refused.send_modify(|count| *count += 1);
        }
    }
}

impl Counted {
    /// Starts counting at 0.
    pub fn new(keys: Arc<dyn KeySpace>) -> Self {
        Self { keys, sent: Sent::default() }
    }

    /// Returns the counters, which continue to rise.
    pub fn sent(&self) -> Sent {
        self.sent.clone()
    }
}

#[async_trait]
impl KeySpace for Counted {
    fn nature(&self) -> Nature {
        self.keys.nature()
    }

    async fn connect(&self) -> Result<Arc<dyn Keys>, Failure> {
        Ok(Arc::new(Client { keys: self.keys.connect().await?, sent: self.sent.clone() }))
    }
}

struct Client {
    keys: Arc<dyn Keys>,
    sent: Sent,
}

#[async_trait]
impl Keys for Client {
    async fn set_nx(&self, key: &str, value: &str) -> Result<bool, Failure> {
        let ours = self.keys.set_nx(key, value).await?;
        self.sent.taken(ours);
        Ok(ours)
    }

    async fn set_nx_px(&self, key: &str, value: &str, ttl: Duration) -> Result<bool, Failure> {
        let ours = self.keys.set_nx_px(key, value, ttl).await?;
        self.sent.taken(ours);
        Ok(ours)
    }

    async fn set(&self, key: &str, value: &str) -> Result<(), Failure> {
        self.sent.command();
        self.keys.set(key, value).await
    }

    async fn expire(&self, key: &str, ttl: Duration) -> Result<bool, Failure> {
        self.sent.command();
        self.keys.expire(key, ttl).await
    }

    async fn ttl(&self, key: &str) -> Result<Option<Option<Duration>>, Failure> {
        self.sent.command();
        self.keys.ttl(key).await
    }

    async fn get(&self, key: &str) -> Result<Option<String>, Failure> {
        self.sent.command();
        self.keys.get(key).await
    }

    async fn del(&self, key: &str) -> Result<bool, Failure> {
        self.sent.command();
        self.keys.del(key).await
    }

    async fn decr(&self, key: &str) -> Result<i64, Failure> {
        self.sent.command();
        self.keys.decr(key).await
    }

    async fn compare_and_del(&self, key: &str, value: &str) -> Result<bool, Failure> {
        self.sent.command();
        self.keys.compare_and_del(key, value).await
    }

    async fn compare_and_expire(
        &self,
        key: &str,
        value: &str,
        ttl: Duration,
    ) -> Result<bool, Failure> {
        self.sent.command();
        self.keys.compare_and_expire(key, value, ttl).await
    }

    async fn compare_and_decr(&self, key: &str) -> Result<Option<i64>, Failure> {
        self.sent.command();
        self.keys.compare_and_decr(key).await
    }

    async fn gone(&self, key: &str) -> Result<bool, Failure> {
        let told = self.keys.gone(key).await?;
        self.sent.wakes.fetch_add(u64::from(told), Relaxed);
        Ok(told)
    }

    async fn names(&self, prefix: &str) -> Result<Vec<String>, Failure> {
        self.sent.command();
        self.keys.names(prefix).await
    }
}
