//! Five independent servers, and clients of their majority.
#![allow(dead_code, reason = "no test file uses all of it")]

use std::{error::Error as _, future::Future, time::Duration};

use lock_core::{Clock, Error, Instant, Locks, Result, StoreUrl};
use lock_lab::{Builder, IndependentRedis, Proxy, Redis, Shift};
use lock_redis::{Redlock, RedlockConfig};

/// Longer than any step of a test takes on a busy machine.
pub const PATIENCE: Duration = Duration::from_secs(20);
pub const TTL: Duration = Duration::from_secs(4);
/// How far the servers' clocks are ahead, so that they seem to run for long: the votes of a server
/// that has just started do not count.
pub const AGE: Duration = Duration::from_secs(3600);

pub struct Five {
    pub nodes: IndependentRedis,
}

impl Five {
    pub async fn start() -> Self {
        Self::of(5).await
    }

    pub async fn of(count: usize) -> Self {
        Self::with(Redis::builder().in_memory(), count).await
    }

    pub async fn with(builder: Builder<Redis>, count: usize) -> Self {
        let nodes = builder.start_independent(count).await.unwrap();
        for node in nodes.iter() {
            node.move_clocks(Shift::ahead(AGE), Shift::NONE).unwrap();
        }
        // Redis reads its clock ten times per second for its uptime.
        for node in nodes.iter() {
            until(async || uptime(node).await >= AGE.as_secs()).await;
        }
        Self { nodes }
    }

    pub fn urls(&self) -> Vec<String> {
        self.nodes.addrs().iter().map(ToString::to_string).collect()
    }

    pub fn url(&self) -> String {
        format!("redlock://{}", self.urls().join(","))
    }

    pub async fn try_locks(&self) -> Result<Locks> {
        try_locks(&self.url()).await
    }

    pub async fn locks(&self) -> Locks {
        self.try_locks().await.unwrap()
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
        let before = clock();
        until(async || self.left_behind().await.is_empty()).await;
        let took = clock().since(before);
        assert!(took < ttl / 2, "{took:?}");
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

pub async fn try_locks(url: &str) -> Result<Locks> {
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

pub async fn within<F: Future>(future: F) -> F::Output {
    tokio::time::timeout(PATIENCE, future).await.expect("it takes too long")
}

/// Looks again and again, because the servers do not announce changes of their state.
pub async fn until(mut condition: impl AsyncFnMut() -> bool) {
    within(async {
        while !condition().await {
            tokio::time::sleep(Duration::from_millis(5)).await;
        }
    })
    .await;
}
