//! The in-memory store of distlock: all promises of a real store, without a server.
//!
//! It is the reference implementation of the contract. Use it to test code that uses locks.
//!
//! # Connect
//!
//! ```
//! # mod distlock { pub use lock_core::*; pub use lock_memory as memory; }
//! use distlock::{Locks, StoreUrl, memory::{MemoryConfig, MemoryLock}};
//!
//! # #[tokio::main(flavor = "current_thread")]
//! # async fn main() -> lock_core::Result<()> {
//! let config = MemoryConfig::from_url(&StoreUrl::parse("memory:orders")?)?;
//! let locks = Locks::new(MemoryLock::connect(config).await?);
//! let guard = locks.lock("orders/42")?.acquire().await?;
//! guard.release().await
//! # }
//! ```
//!
//! `memory:` is one store for the whole process, `memory:NAME` another one. [`MemoryStore::named`]
//! returns the same store to a test. [`MemoryStore::new`] makes one that no URL names.
//!
//! # Guarantees
//!
//! All kinds of locks. Waiters get the lock in the order of their arrival, and a push wakes them.
//! Tokens always rise. The store excludes the tasks of one process from each other. It does not
//! exclude other processes.
//!
//! The clock is tokio's: under `tokio::time::pause` a TTL passes in no time. Faults can be
//! scripted: [`MemoryStore::expire`], [`MemoryStore::delete`], and per client [`Faults`]
//! (partition, half a partition, latency, a lost request or reply, a denied or rejected request, a
//! lost lock, a paused renewal).
//!
//! # Options
//!
//! `memory:[NAME][?ttl=15s]`, or the fields of [`MemoryConfig`], which have the same names. The TTL
//! is 200 ms to 24 h.
//!
//! # Store set-up and rights
//!
//! None. A named store is made at the first use of its name, and lives as long as the process.
//!
//! # Implementation
//!
//! Each client sends its requests through a network of its own, which may lose them, as with a
//! server. The store applies the [queue rule](lock_core::queue) to its queues;
//! [`MemoryStore::contents`] shows them. With the feature `properties` a store can be broken on
//! purpose in one way for each executable property, to test the properties.

#![cfg_attr(docsrs, feature(doc_cfg))]
#![cfg_attr(not(test), warn(clippy::large_futures))]

mod acquire;
mod config;
mod defect;
mod election;
mod fault;
#[cfg(feature = "properties")]
mod harness;
mod lease;
mod lock;
mod session;
mod store;
mod wire;

pub use crate::{config::MemoryConfig, fault::Faults, lock::MemoryLock, store::MemoryStore};
#[cfg(feature = "properties")]
pub use crate::{defect::Defect, harness::MemoryHarness};
