//! A private server of each store that is compiled in.
#![allow(dead_code, reason = "each test file uses its part")]

use std::{ops::Deref, time::Duration};

use distlock::Locks;
use lock_lab::Server;

/// A running private server; it ends when it is dropped.
pub type Running = Box<dyn Deref<Target = Server> + Send + Sync>;

/// The stores by name, as far as they are compiled in.
pub const STORES: &[&str] = &[
    #[cfg(feature = "etcd")]
    "etcd",
    #[cfg(feature = "redis")]
    "redis",
    #[cfg(feature = "zookeeper")]
    "zookeeper",
];

/// Starts a server of the store with this name.
pub async fn start(store: &str) -> Running {
    let started: Result<Running, lock_lab::LabError> = match store {
        "etcd" => lock_lab::Etcd::start().await.map(|server| Box::new(server) as Running),
        "redis" => lock_lab::Redis::start().await.map(|server| Box::new(server) as Running),
        "zookeeper" => lock_lab::ZooKeeper::start().await.map(|server| Box::new(server) as Running),
        other => panic!("no server for {other}"),
    };
    started.unwrap_or_else(|error| panic!("{error}"))
}

/// Connects, or fails the test.
pub async fn connect(url: &str) -> Locks {
    distlock::connect(url).await.unwrap_or_else(|error| panic!("{error}"))
}

/// Waits until something is so; fails the test with `what` if it never is.
pub async fn eventually<F: Future<Output = bool>>(what: &str, mut is_so: impl FnMut() -> F) {
    let wait = async {
        while !is_so().await {
            tokio::time::sleep(Duration::from_millis(10)).await;
        }
    };
    let waited = tokio::time::timeout(Duration::from_secs(20), wait).await;
    waited.unwrap_or_else(|_| panic!("still not so: {what}"));
}
