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

mod adopt;
pub mod blocking;
mod connect;
pub mod deadline;
mod diagnosis;
mod drain;
mod driver;
pub mod duration;
mod election;
mod entry;
mod error;
mod facts;
mod floor;
mod gate;
mod guarantees;
mod guard;
mod held;
mod held_set;
mod lock;
mod locks;
mod machine;
mod name;
mod options;
mod overlap;
mod owner;
#[cfg(feature = "properties")]
pub mod properties;
pub mod queue;
mod reach;
mod request;
mod returns;
mod run;
mod semaphore;
mod set;
mod signal;
mod ticket;
mod token;
pub mod trace;
mod url;
mod vain;
mod validity;

pub use crate::{
    connect::{Connect, DefaultPort, Opener, Opening},
    deadline::{Clock, Instant, wall_clock},
    diagnosis::Diagnosis,
    driver::{DistributedLock, Lease, Wish, limit_conflict, only_exclusive},
    election::{Election, Leader, Leadership, Observed, Observer},
    entry::{Entry, Holder},
    error::{BoxError, ClosedBy, Effect, Error, Result},
    facts::Facts,
    floor::TokenFloor,
    gate::{Gate, StaleToken},
    guarantees::{
        Fairness, Fencing, FixedTerm, Guarantees, LockKind, LossSignal, Requirement, Survives, Wake,
    },
    guard::LockGuard,
    held::Held,
    held_set::HeldSet,
    lock::Lock,
    locks::Locks,
    name::LockName,
    overlap::Overlap,
    owner::Owner,
    queue::Kind,
    reach::{ConnectionState, Reach},
    request::{Attempt, Request, Term, Wait, this_process},
    run::Leading,
    semaphore::Semaphore,
    set::{LockSet, LockSetGuard},
    ticket::Ticket,
    token::FencingToken,
    url::{Options, StoreUrl},
    validity::{LossReason, Validity},
};
