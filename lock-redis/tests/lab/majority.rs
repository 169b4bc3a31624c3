//! Five independent servers, and clients of their majority.

use std::{error::Error as _, time::Duration};

use lock_core::{Clock, Error, Instant, Locks, StoreUrl};
use lock_lab::{Builder, IndependentRedis, LabError, Lent, Pool, Proxy, Redis, Shift};
use lock_redis::{Redlock, RedlockConfig};

use super::{bounded::bounded, nobody_is_connected, until};

/// For a test that waits for a renewal or an expiry.
pub const TTL: Duration = Duration::from_secs(6);
/// Longer than any test, so that nothing expires by itself.
pub const LONG: Duration = Duration::from_secs(60);
/// Options of a client that waits for an answer for [`PATIENT`], with locks for [`LONG`].
pub const PATIENTLY: &str = "?request_timeout=15s";
pub const PATIENT: Duration = Duration::from_secs(15);
/// How far the servers' clocks are ahead, so that they seem to run for long: the votes of a server
/// that has just started do not count.
pub const AGE: Duration = Duration::from_secs(3600);

static POOL: Pool<Five> = Pool::new();

pub struct Five {
    pub nodes: IndependentRedis,
}

impl Five {
    /// For a test that changes no more than their data.
    pub async fn lent() -> Lent<Self> {
        POOL.lend(async |five| five.is_left_and_empty().await, Self::start).await.unwrap()
    }

    /// For a test that kills or changes some of them.
    pub async fn own() -> Self {
        Self::start().await.unwrap()
    }

    async fn start() -> Result<Self, LabError> {
        Self::with(Redis::builder().in_memory(), 5).await
    }

    pub async fn with(builder: Builder<Redis>, count: usize) -> Result<Self, LabError> {
        let nodes = builder.start_independent(count).await?;
        for node in nodes.iter() {
            node.move_clocks(Shift::ahead(AGE), Shift::NONE)?;
        }
        // Redis reads its clock ten times per second for its uptime.
        for node in nodes.iter() {
            until(async || uptime(node).await >= AGE.as_secs()).await;
        }
        Ok(Self { nodes })
    }

    async fn is_left_and_empty(&self) -> Result<(), LabError> {
        for node in self.nodes.iter() {
            nobody_is_connected(node).await;
        }
        self.flush().await;
        Ok(())
    }

    pub fn urls(&self) -> Vec<String> {
        self.nodes.addrs().iter().map(ToString::to_string).collect()
    }

    pub fn url(&self) -> String {
        format!("redlock://{}", self.urls().join(","))
    }

    pub async fn try_locks(&self) -> lock_core::Result<Locks> {
        try_locks(&self.url()).await
    }

    pub async fn locks(&self) -> Locks {
        self.try_locks().await.unwrap()
    }

    /// Waits until a client is connected to all servers: a connect waits for a majority.
    pub async fn all_know(&self, locks: &Locks) {
        let guard = locks.lock("hello").unwrap().ttl(LONG).acquire().await.unwrap();
        until(async || {
            guard.renew().await.unwrap();
            self.votes("hello").await == self.nodes.len()
        })
        .await;
        guard.release().await.unwrap();
        until(async || self.left_behind().await.is_empty()).await;
    }

    /// The number of servers with this key.
    pub async fn votes(&self, key: &str) -> usize {
        let mut votes = 0;
        for node in self.nodes.iter() {
            votes += usize::from(node.command(&[b"EXISTS", key.as_bytes()]).await.unwrap() == "1");
        }
        votes
    }

    /// Deletes everything on all servers.
    pub async fn flush(&self) {
        for node in self.nodes.iter() {
            node.command(&[b"FLUSHALL"]).await.unwrap();
        }
    }

    pub async fn left_behind(&self) -> Vec<String> {
        let mut left = Vec::new();
        for node in self.nodes.iter() {
            let keys = node.keys().await.unwrap();
            let keys = keys.iter().filter(|key| !key.ends_with(b"\xFFfence"));
            left.extend(keys.map(|key| String::from_utf8_lossy(key).into_owned()));
        }
        left
    }

    /// Fails unless everything is gone much earlier than it would expire.
    pub async fn nothing_is_left_for(&self, ttl: Duration) {
        let gone = until(async || self.left_behind().await.is_empty());
        bounded("what is left goes", ttl / 2, gone).await;
    }
}

/// A client behind a proxy per server.
pub struct Far {
    // First: the locks are dropped before their network.
    pub locks: Locks,
    pub proxies: Vec<Proxy>,
}

impl Far {
    pub async fn of(five: &Five) -> Self {
        Self::with(five, "").await
    }

    /// With options in its URL.
    pub async fn with(five: &Five, options: &str) -> Self {
        let mut proxies = Vec::new();
        for addr in five.nodes.addrs() {
            proxies.push(Proxy::start(addr).await.unwrap());
        }
        let hosts: Vec<_> = proxies.iter().map(|proxy| proxy.addr().to_string()).collect();
        let locks = try_locks(&format!("redlock://{}{options}", hosts.join(","))).await.unwrap();
        Self { locks, proxies }
    }
}

pub async fn uptime(node: &Redis) -> u64 {
    let info = node.command(&[b"INFO", b"server"]).await.unwrap();
    let uptime = info.lines().find_map(|line| line.strip_prefix("uptime_in_seconds:"));
    uptime.unwrap().trim().parse().unwrap()
}

pub async fn try_locks(url: &str) -> lock_core::Result<Locks> {
    Ok(Locks::new(Redlock::connect(RedlockConfig::from_url(&StoreUrl::parse(url)?)?).await?))
}

pub fn clock() -> Instant {
    Clock::Boot.now()
}

/// An error with all its causes.
pub fn error_chain(error: &Error) -> String {
    let (mut text, mut cause) = (error.to_string(), error.source());
    while let Some(next) = cause {
        text = format!("{text}: {next}");
        cause = next.source();
    }
    text
}
