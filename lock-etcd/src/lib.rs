//! The etcd driver of distlock: a first-come-first-served queue by create revision, shared with
//! Go's `concurrency.Mutex` and `etcdctl lock`.
//!
//! ```no_run
//! use lock_core::{Locks, StoreUrl};
//!
//! # async fn example() -> lock_core::Result<()> {
//! let locks = Locks::new(lock_etcd::connect(&StoreUrl::parse("etcd://127.0.0.1:2379")?).await?);
//! let guard = locks.lock("orders")?.acquire().await?;
//! println!("fencing token {}", guard.token());
//! guard.release().await
//! # }
//! ```

mod claim;
mod config;
mod connection;
mod entry;
mod error;
mod keepalive;
mod layout;
mod lease;
mod lister;
mod lock;
mod names;
mod queue;
mod requests;
mod session;
mod sessions;
mod slots;
mod store;
mod stream;
mod watch;

/// The client crate, so that a benchmark can compare with it in the same version.
pub use etcd_client as client;

pub use crate::{
    config::EtcdConfig,
    lease::EtcdLease,
    lock::{EtcdLock, connect},
};
