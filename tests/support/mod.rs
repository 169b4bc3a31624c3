//! What the tests of several modules need: stores, connections, waits and random numbers.
#![allow(
    dead_code,
    unused_imports,
    unused_macros,
    reason = "each program and each feature uses its part"
)]

#[path = "../shared/beat.rs"]
pub mod beat;
#[path = "../shared/bounded.rs"]
pub mod bounded;
#[path = "../shared/undisturbed.rs"]
pub mod undisturbed;
#[macro_use]
mod per_store;
mod random;
pub mod servers;
mod store;

use std::time::Duration;

use distlock::Locks;
pub use lock_lab::size;

pub use self::{
    random::Random,
    store::{Running, Store, start, start_patient},
};

/// The stores that are compiled in and that another process can reach, by name.
pub fn stores() -> impl Iterator<Item = &'static str> {
    let compiled_in = distlock::STORES.iter().filter(|store| store.compiled_in);
    compiled_in.map(|store| store.scheme).filter(|name| *name != "memory")
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
    let waited = tokio::time::timeout(Duration::from_secs(60), wait).await;
    waited.unwrap_or_else(|_| panic!("still not so: {what}"));
}
