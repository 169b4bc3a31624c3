//! Floors: the bare client, which sends the least that takes and frees a name, and the bare client
//! which touches the same keys as distlock's driver. They promise nothing and do not wait, so each
//! worker has a name of its own.
#![allow(dead_code, reason = "each store uses its part")]

#[cfg(any(feature = "sqlite", feature = "mysql", feature = "postgres"))]
pub(super) mod database;
#[cfg(feature = "etcd")]
pub(super) mod etcd;
#[cfg(feature = "redis")]
pub(super) mod redis;
#[cfg(any(feature = "sqlite", feature = "mysql", feature = "postgres"))]
pub(super) mod sql;
#[cfg(feature = "zookeeper")]
pub(super) mod zookeeper;

use std::sync::atomic::{AtomicU64, Ordering::Relaxed};

/// As long as a holder's description of itself.
const NOTE: &str = r#"{"holder":"bench-0123456789abcdef pid 12345 on a-host","since":1700000000000,"attempt":"00000000-0000-0000-0000-000000000000"}"#;

/// Returns a name that no other worker of any process on this machine has.
fn own(name: &str) -> String {
    static COUNT: AtomicU64 = AtomicU64::new(0);
    format!("{name}.{}.{}", std::process::id(), COUNT.fetch_add(1, Relaxed))
}
