//! A driver for a store without a queue, made of five requests.
//!
//! A store that can take, renew and remove one entry per name implements [`PolledStore`].
//! [`Polling`] makes a full [`DistributedLock`](crate::DistributedLock) of it: it asks again while
//! others hold the lock, outlives outages that are shorter than a TTL, renews holds, and removes
//! what cancelled attempts and unanswered requests have left. Locks are exclusive, and granted in
//! no order. `examples/third_party_driver` in the repository is such a driver, for a directory.
//!
//! A store that keeps a queue, or that notifies its clients when a lock is free, implements
//! [`DistributedLock`](crate::DistributedLock) itself.
//!
//! ```
//! # mod distlock { pub use lock_core::*; }
//! use distlock::{Locks, polling::{PolledStore, Polling}};
//!
//! fn locks(store: impl PolledStore) -> Locks {
//!     Locks::new(Polling::new(store))
//! }
//! ```

mod driver;
mod hold;
mod store;
mod way;

pub use self::{driver::Polling, store::PolledStore};
