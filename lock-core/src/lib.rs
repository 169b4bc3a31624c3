//! The contract of distlock: what people call, what a driver implements, and the executable
//! properties that every driver keeps.
//!
//! ```no_run
//! use std::time::Duration;
//!
//! # async fn save(_: lock_core::FencingToken) {}
//! # async fn example(locks: lock_core::Locks) -> lock_core::Result<()> {
//! let guard = locks.lock("orders/42")?.ttl(Duration::from_secs(10)).acquire().await?;
//! save(guard.token()).await; // the store of orders rejects older tokens
//! guard.release().await?;
//! # Ok(()) }
//! ```
//!
//! People use [`Locks`], [`Lock`] and [`LockGuard`] through the crate `distlock`, which connects by
//! URL. A driver implements [`DistributedLock`] and [`Lease`].
//!
//! # What a lease does not promise
//!
//! A holder can be paused past its TTL and write late. No client library can prevent that. Give the
//! [`FencingToken`] to the resource, and let the resource reject a token lower than the greatest
//! it has seen; [`Gate`] is that check. [`Lock::run`] stops the work at the safe deadline.

mod api;
pub mod blocking;
pub mod deadline;
mod driver;
mod error;
pub mod keep;
mod kind;
mod machine;
#[cfg(feature = "properties")]
pub mod properties;
pub mod queue;
mod url;

pub use crate::{
    api::{
        connect::{Connect, DefaultPort, Opener, Opening},
        election::{Election, Leadership, leading::Leading, observer::Observer},
        gate::{Gate, StaleToken},
        guard::LockGuard,
        held::Held,
        lock::Lock,
        locks::Locks,
        owner::Owner,
        semaphore::Semaphore,
        set::{LockSet, guard::LockSetGuard, held::HeldSet},
    },
    deadline::{Clock, Instant, wall_clock},
    driver::{
        diagnosis::Diagnosis,
        duration,
        entry::{Entry, Holder},
        facts::Facts,
        floor::TokenFloor,
        guarantees::{Fairness, Fencing, FixedTerm, Guarantees, LossSignal, Survives, Wake},
        leader::{Leader, Observed},
        loss::LossReason,
        name::LockName,
        overlap::Overlap,
        reach::{ConnectionState, Reach},
        refusals::{limit_conflict, only_exclusive},
        request::{Attempt, Request, Term, Wait, Wish, this_process},
        requirement::Requirement,
        ticket::Ticket,
        token::FencingToken,
        trace,
        traits::{DistributedLock, Lease},
        validity::Validity,
    },
    error::{BoxError, ClosedBy, Effect, Error, Result},
    kind::{Kind, LockKind},
    url::{Options, StoreUrl},
};
