//! The parts of a driver, for authors of drivers, and for tests below the level of
//! [`Locks`](crate::Locks). Programs that only lock do not need them.
//!
//! A driver implements [`DistributedLock`] and [`Lease`] with the crate `async-trait`. Their pages
//! are the contract. [`Locks::new`](crate::Locks::new) makes locks from a driver, and
//! [`Locks::driver`](crate::Locks::driver) returns it. The feature `properties` adds the executable
//! properties that every driver keeps. `docs/testing.md` in the repository describes how to test
//! programs that use locks.
//!
//! A store without a queue needs five requests: [`polling`]. The front page of the crate
//! `distlock-core` lists what to write, in order. `examples/third_party_driver` in the repository is a
//! driver outside the workspace.
//!
//! Types that applications use too are at the root of this crate: `Error`, `Guarantees`, `Kind`,
//! `LockName`, `Term` and similar ones.
//!
//! ```
//! use std::time::Duration;
//!
//! use distlock::driver::{Attempt, DistributedLock, Request};
//!
//! # #[tokio::main(flavor = "current_thread")]
//! # async fn main() -> distlock::Result<()> {
//! let locks = distlock::connect("memory:").await?;
//! let request = Request::new("orders/42".parse()?, Duration::from_secs(10));
//! let lease = locks.driver().acquire(request, Attempt::new()).await?;
//! assert!(locks.lock("orders/42")?.try_acquire().await?.is_none());
//! lease.release().await?;
//! # Ok(()) }
//! ```

#[cfg(feature = "properties")]
pub use lock_core::properties;
pub use lock_core::{
    Attempt, BoxError, Clock, Diagnosis, DistributedLock, Instant, Lease, Observed, Options, Reach,
    Request, Validity, Wait, Wish, deadline, duration, polling, queue, trace,
};
