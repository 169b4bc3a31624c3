//! Clients, and waits for what they do.

use std::{future::Future, time::Duration};

use lock_core::{Clock, Locks, StoreUrl};
use lock_etcd::{EtcdConfig, EtcdLock};

/// Longest wait, long enough for a busy machine.
pub const PATIENCE: Duration = Duration::from_secs(60);

pub type Failure = Box<dyn std::error::Error + Send + Sync>;

pub async fn driver(url: &str) -> EtcdLock {
    let config = EtcdConfig::from_url(&StoreUrl::parse(url).unwrap()).unwrap();
    EtcdLock::connect(config).await.unwrap()
}

pub async fn locks(url: &str) -> Locks {
    Locks::new(driver(url).await)
}

/// Waits until a condition is true.
pub async fn until<F: Future<Output = bool>>(what: &str, mut is_so: impl FnMut() -> F) {
    let end = Clock::Boot.now() + PATIENCE;
    let mut pause = Duration::from_millis(5);
    while !is_so().await {
        assert!(Clock::Boot.now() < end, "waited in vain until {what}");
        tokio::time::sleep(pause).await;
        // A look may cost the server more than what is waited for.
        pause = (pause * 3 / 2).min(Duration::from_millis(50));
    }
}

/// Waits until a name has this many entries.
pub async fn until_queued(locks: &Locks, name: &str, entries: usize) {
    until("they are queued", || async { locks.inspect(name).await.unwrap().len() == entries })
        .await;
}
