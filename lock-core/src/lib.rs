//! The contract of distlock: what a lock promises that several processes share through a store.
//!
//! - **Mutual exclusion:** at most one client holds a lock, or as many as its kind lets in.
//! - **Liveness:** a holder that crashed or was cut off does not block the others for ever.
//! - **Symmetry:** only the client that acquired a lock releases or renews it.
//!
//! The traits [`DistributedLock`] and [`Lease`] say these and the other promises to the author of a
//! driver. The [`properties`] check each of them against the real store.
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
//! Applications use [`Locks`], [`Lock`] and [`LockGuard`] through the crate `distlock`, which
//! connects by URL. The rest of this page is for the author of a driver.
//!
//! # A driver in nine steps
//!
//! Each step works without the later ones. lock-core refuses a missing part with
//! [`Error::Unsupported`], and the properties skip it.
//!
//! | step | what to write | what it must promise |
//! |---|---|---|
//! | 1 | the way: a queue of its own ([`DistributedLock`] and [`Lease`]), or a store without a queue ([`polling::PolledStore`], five requests, and only steps 2, 3 and 9 are left) | |
//! | 2 | a configuration: `XConfig::from_url(&StoreUrl)`, by [`StoreUrl::options`] and [`Options::finish`]; public fields, setters | an unknown option is an error; `Debug` shows no password |
//! | 3 | [`guarantees`](DistributedLock::guarantees): [`Guarantees::least`], raised to what the store keeps; [`clock`](DistributedLock::clock) | what the store keeps as it is deployed: the driver asks the store when it connects |
//! | 4 | [`acquire`](DistributedLock::acquire), with [`Wait::Try`] and [`Wait::Queue`]; [`queue::judge`] says which attempts are admitted | one holder; the attempt's [id](Attempt::id) is its identity; a cancelled attempt leaves nothing, not even the effect of an unanswered request |
//! | 5 | a lease: [`token`](Lease::token), [`validity`](Lease::validity), [`renew`](Lease::renew), [`release`](Lease::release) | [`Validity`] is extended from the *send* time, by [`validity::safe_until`], and lost as soon as the store says so; a late call touches no other attempt's entry |
//! | 6 | renewal while [`Term::Renewed`], for many locks by few requests; [`reach`](DistributedLock::reach) | a lock outlives an outage that is shorter than its TTL |
//! | 7 | [`inspect`](DistributedLock::inspect), [`names`](DistributedLock::names), [`revoke`](DistributedLock::revoke), [`close`](DistributedLock::close) | a revoked holder is notified; a close leaves nothing |
//! | 8 | the rest, each with a default that refuses it: [`try_all`](DistributedLock::try_all), [`observe`](DistributedLock::observe) and [`publish`](Lease::publish), [`downgrade`](Lease::downgrade) and [`try_upgrade`](Lease::try_upgrade), [`detach`](Lease::detach) and [`adopt`](DistributedLock::adopt), [the token floor](DistributedLock::token_floor), [marks](DistributedLock::mark) and [`mark`](Lease::mark) | what [`Guarantees::kinds`], `names_at_once`, `detach` and `marks` say of it |
//! | 9 | a `Harness` of about 30 lines for `properties` (feature `properties`), and a test that runs `properties::all()` | each check is kept, or skipped because the store does not promise it |
//!
//! Errors are [`Error`]s: [`Unavailable`](Error::Unavailable) with its [`Effect`] for an outage,
//! [`Denied`](Error::Denied), [`Misconfigured`](Error::Misconfigured),
//! [`Rejected`](Error::Rejected), [`PlaceLost`](Error::place_lost), [`Closed`](Error::closed).
//!
//! What lock-core does for a driver:
//!
//! - It polls the futures of [`acquire`](DistributedLock::acquire) and of a [`Lease`] to their end,
//!   so they are straight-line code. Instead of dropping one, it [cancels](Attempt::cancelled) the
//!   attempt.
//! - It ends waits, tries and fixed terms at their limits, and asks
//!   [`diagnose`](DistributedLock::diagnose) for the text of a wait that timed out.
//! - It notifies a holder at its deadline, stops the work of [`Lock::run`], and gives back locks
//!   that are dropped, lost, or not collected.
//! - It checks names, TTLs and kinds before the driver is asked, and names the operation and the
//!   server in its errors. [`trace`] has its events.
//!
//! `examples/third_party_driver` in the repository is a driver of under 150 lines. `distlock-memory` is
//! the reference: it keeps every promise and needs no server.
//!
//! # What a lease does not promise
//!
//! A holder can be paused past its TTL and write late. No client library can prevent that. Give the
//! [`FencingToken`] to the resource, and let the resource reject a token lower than the greatest
//! it has seen; [`Gate`] is that check. [`Lock::run`] stops the work at the safe deadline.
//!
#![cfg_attr(feature = "properties", doc = "[`properties`]: crate::properties")]
#![cfg_attr(not(feature = "properties"), doc = "[`properties`]: DistributedLock#contract")]
#![cfg_attr(docsrs, feature(doc_cfg))]
#![cfg_attr(not(test), warn(clippy::large_futures))]

mod api;
#[cfg(feature = "blocking")]
pub mod blocking;
pub mod deadline;
mod driver;
mod error;
#[doc(hidden)]
pub mod keep;
mod kind;
mod machine;
pub mod polling;
#[cfg(feature = "properties")]
#[allow(clippy::large_futures, reason = "scenes: each is played once")]
pub mod properties;
pub mod queue;
mod url;

pub use crate::{
    api::{
        connect::{Connect, Opener, Opening},
        election::{Election, Leadership, leading::Leading, observer::Observer},
        gate::{Gate, StaleToken},
        guard::LockGuard,
        held::Held,
        lock::Lock,
        locks::Locks,
        once::{Once, OncePer},
        owner::Owner,
        semaphore::Semaphore,
        set::{LockSet, guard::LockSetGuard, held::HeldSet},
    },
    deadline::{Clock, Instant, wall_clock},
    driver::{
        boxed::BoxFuture,
        diagnosis::Diagnosis,
        duration,
        entry::{Entry, Holder},
        facts::Facts,
        floor::TokenFloor,
        guarantees::{
            ClockJumps, Fairness, Fencing, FixedTerm, Guarantees, LossSignal, Survives, Wake,
        },
        layout::Layout,
        leader::{Leader, Observed},
        loss::LossReason,
        mark::Mark,
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
        validity::{self, Validity},
    },
    error::{BoxError, ClosedBy, Effect, Error, Result},
    kind::{Kind, LockKind},
    url::{
        Options, StoreUrl,
        secret::Secret,
        timeouts::Timeouts,
        tls::{Encryption, Pem, Tls},
        user::User,
    },
};
