//! What a driver is made of: for authors of drivers, and for tests that look below
//! [`Locks`](crate::Locks). Whoever only locks needs none of it.
//!
//! A driver implements [`DistributedLock`] and [`Lease`], whose pages are the contract, with the
//! crate `async-trait`; [`Locks::new`](crate::Locks::new) makes locks of it, and
//! [`Locks::driver`](crate::Locks::driver) gives it back. The feature `properties` adds the
//! executable properties that every driver keeps, and `docs/testing.md` in the repository is about
//! testing what uses locks.
//!
//! A store without a queue needs five requests: [`polling`]. The front page of the crate `lock-core`
//! says what to write in which order; `examples/third_party_driver` in the repository is a driver
//! from outside.
//!
//! What people call as well is at the root of this crate: `Error`, `Guarantees`, `Kind`,
//! `LockName`, `Term` and the like.
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
    Attempt, BoxError, Clock, DefaultPort, Diagnosis, DistributedLock, Instant, Lease, Observed,
    Opener, Opening, Options, Reach, Request, Validity, Wait, Wish, deadline, duration,
    limit_conflict, only_exclusive, polling, queue, this_process, wall_clock,
};
