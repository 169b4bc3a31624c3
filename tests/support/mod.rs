//! A private store of each kind that is compiled in.
#![allow(dead_code, unused_macros, reason = "each program and each feature uses its part")]

#[macro_use]
mod per_store;
mod random;

use std::time::Duration;

use distlock::Locks;
use lock_lab::{AnyServer, AnyStore};

pub use self::random::Random;

/// A running private server. Dropping it stops the server.
pub type Running = AnyServer;

/// A private store. Dropping it ends the store.
pub type Store = AnyStore;

/// The stores that are compiled in and that another process can reach, by name.
pub fn stores() -> impl Iterator<Item = &'static str> {
    let compiled_in = distlock::STORES.iter().filter(|store| store.compiled_in);
    compiled_in.map(|store| store.scheme).filter(|name| *name != "memory")
}

/// Starts a server of the store with this name, or fails the test.
pub async fn start(store: &str) -> Running {
    Running::start(store).await.unwrap_or_else(|error| panic!("{error}"))
}

/// Connects, or fails the test.
pub async fn connect(url: &str) -> Locks {
    distlock::connect(url).await.unwrap_or_else(|error| panic!("{error}"))
}

/// Waits until a condition holds. Fails the test with `what` if it never does.
pub async fn eventually<F: Future<Output = bool>>(what: &str, mut is_so: impl FnMut() -> F) {
    let wait = async {
        while !is_so().await {
            tokio::time::sleep(Duration::from_millis(10)).await;
        }
    };
    let waited = tokio::time::timeout(Duration::from_secs(20), wait).await;
    waited.unwrap_or_else(|_| panic!("still not so: {what}"));
}
