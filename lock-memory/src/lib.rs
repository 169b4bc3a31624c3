//! The in-memory store of distlock: every promise of a real store, without a server.
//!
//! It is the reference implementation of the contract, and it is for tests of code that locks.
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
//! `memory:` is one store for the whole process, `memory:NAME` another one; [`MemoryStore::named`]
//! is the same store for a test, and [`MemoryStore::new`] one that no URL names.
//!
//! # Guarantees
//!
//! All kinds of locks; first come, first served; a waiter is woken by a push; tokens always rise.
//! The store excludes the tasks of one process from each other, and no other process.
//!
//! The clock is tokio's: under `tokio::time::pause` a TTL passes in no time. Faults are scripted:
//! [`MemoryStore::expire`], [`MemoryStore::delete`], and per client [`Faults`] (partition, half a
//! partition, latency, a lost request or reply, a lost lock, a paused renewal).
//!
//! # Options
//!
//! `memory:[NAME][?ttl=15s]`, or the fields of [`MemoryConfig`], which have the same names.
//!
//! | option | meaning | default |
//! |---|---|---|
//! | `ttl` | the TTL of a lock whose builder names none, 200 ms to 24 h | `15s` |
//!
//! # Store set-up and rights
//!
//! None. A named store is made when it is first named, and lives as long as the process.
//!
//! # Implementation
//!
//! A client sends its requests through a network of its own, which may lose them, as a client of a
//! server does. The store judges its queues by the [queue rule](lock_core::queue);
//! [`MemoryStore::contents`] shows them. With the feature `properties` a store can be broken on
//! purpose in one way for each executable property, to test these.

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
