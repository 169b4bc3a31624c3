//! The in-memory store of distlock: every promise of a real store, without a server.
//!
//! It is the reference implementation of the contract, and it is for tests of code that locks: the
//! clock is tokio's, so under `tokio::time::pause` a TTL passes in no time, and faults are scripted:
//! [`MemoryStore::expire`], [`MemoryStore::delete`], and per client [`Faults`] (partition, half a
//! partition, latency, a lost request or reply, a lost lock, a paused watchdog).
//!
//! By URL: `memory:` is one store for the whole process, `memory:NAME` another one;
//! [`MemoryStore::named`] is the same store for a test. It excludes the tasks of one process from each
//! other, and nobody else.

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
