//! The executable properties: what every driver keeps, checked against its real store.
//!
//! A driver's author writes a [`Harness`] of about 30 lines, which brings clients and faults, and
//! runs [`all`]. One file per property; each says where it comes from. Each is itself tested by a
//! deliberately broken lock in `lock-memory` that exactly this property rejects.
//!
//! ```no_run
//! # async fn example(harness: &dyn lock_core::properties::Harness) {
//! for property in lock_core::properties::all() {
//!     for check in property.checks {
//!         match check.run(harness).await {
//!             Ok(outcome) => println!("{}::{}: {outcome:?}", property.name, check.name),
//!             Err(failure) => panic!("{}::{}: {failure}", property.name, check.name),
//!         }
//!     }
//! }
//! # }
//! ```
//!
//! Each check wants a store of its own, or one that nobody else uses meanwhile: some restart it,
//! some count what is left in it. A harness may also keep each check to names of its own in a store
//! that others use, and answer [`NotHere`] where it cannot do what is asked.

mod as_mutex;
mod cancellation;
mod detach;
mod election;
mod fairness;
mod fencing;
mod guise;
mod harness;
mod liveness;
mod loss;
mod mutual_exclusion;
mod names;
mod operators;
mod permits;
mod reconnect;
mod renewal;
mod scene;
mod sets;
mod sharing;
mod symmetry;
mod timeouts;
mod try_acquire;
mod unpolled;
mod vain_waits;

use std::{future::Future, pin::Pin};

use crate::LockKind;

pub use as_mutex::{AS_MUTEX, AsMutex};
pub use guise::Guise;
pub use harness::{Client, Harness, NotHere};

/// Why a check failed.
pub type Failure = Box<dyn std::error::Error + Send + Sync>;

/// What did not happen in time, although no property promises it: the store hangs, or is too slow
/// for the check.
#[derive(Clone, Debug, thiserror::Error)]
#[error("{0}")]
pub struct Late(pub String);

/// What a property promises and did not happen: a grant, a loss in time, a lock that lasts. The
/// promise is broken, unless the store was out of reach meanwhile. No outage excuses the failures
/// of other types.
#[derive(Clone, Debug, thiserror::Error)]
#[error("{0}")]
pub struct Missed(pub String);

/// How a check ended.
pub type Checked = Result<Outcome, Failure>;

/// A check that did not fail.
#[derive(Clone, Debug, Eq, PartialEq)]
#[non_exhaustive]
pub enum Outcome {
    /// The store keeps the promise.
    Kept,
    /// The store does not make the promise, or the harness cannot try it; the text says so in its
    /// words.
    Skipped(String),
}

/// A promise and the checks for it.
#[derive(Clone, Copy, Debug)]
pub struct Property {
    /// Its name, as in the contract of [`DistributedLock`](crate::DistributedLock).
    pub name: &'static str,
    /// The promise in a few words, for people who run a store.
    pub words: &'static str,
    /// Whether its checks are those of an exclusive lock, which others that act as one can be put
    /// to as well: [`AsMutex`].
    pub of_exclusive: bool,
    /// The checks.
    pub checks: &'static [Check],
}

type Run = for<'a> fn(&'a dyn Harness) -> Pin<Box<dyn Future<Output = Checked> + Send + 'a>>;

/// One scenario.
#[derive(Clone, Copy)]
pub struct Check {
    /// What happens in it.
    pub name: &'static str,
    run: Run,
}

impl Check {
    /// Plays the scenario.
    ///
    /// # Errors
    ///
    /// What the store did instead of what it promises.
    pub async fn run(&self, harness: &dyn Harness) -> Checked {
        let required = harness.guise().requires();
        if required != LockKind::Exclusive {
            let client = harness.client().await?;
            if let Some(skipped) = scene::without_kind(&*client, required) {
                return Ok(skipped);
            }
        }
        match (self.run)(harness).await {
            Err(failure) => match failure.downcast::<NotHere>() {
                Ok(why) => Ok(Outcome::Skipped(why.to_string())),
                Err(failure) => Err(failure),
            },
            checked => checked,
        }
    }
}

impl std::fmt::Debug for Check {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str(self.name)
    }
}

/// Lists a property's checks by their functions' names.
macro_rules! property {
    ($($check:ident),+ $(,)?) => {
        pub(super) const CHECKS: &[super::Check] = &[$(super::Check {
            name: stringify!($check),
            run: |harness| Box::pin($check(harness)),
        }),+];
    };
}
use property;

/// Fails a check with a message unless a condition holds.
macro_rules! ensure {
    ($condition:expr, $($message:tt)+) => {
        if !$condition {
            return Err(format!($($message)+).into());
        }
    };
}
use ensure;

/// Fails a check with [`Missed`] unless a condition holds.
macro_rules! keeps {
    ($condition:expr, $($message:tt)+) => {
        if !$condition {
            return Err(super::Missed(format!($($message)+)).into());
        }
    };
}
use keeps;

macro_rules! properties {
    (of_exclusive: $($name:ident $words:literal),+; others: $($other:ident $more:literal),+;) => {
        /// All properties.
        pub fn all() -> &'static [Property] {
            &[
                $(Property {
                    name: stringify!($name),
                    words: $words,
                    of_exclusive: true,
                    checks: $name::CHECKS,
                }),+,
                $(Property {
                    name: stringify!($other),
                    words: $more,
                    of_exclusive: false,
                    checks: $other::CHECKS,
                }),+
            ]
        }
    };
}

properties!(
    of_exclusive:
    mutual_exclusion "Mutual exclusion: never two holders",
    liveness "A holder that is gone blocks nobody",
    symmetry "Nobody's late call frees another's lock",
    fencing "Fencing tokens rise with every grant",
    cancellation "An attempt given up leaves nothing",
    loss "A loser is told before the next gets in",
    fairness "First come, first served",
    try_acquire "A try answers at once, overtakes nobody",
    names "Any text is a name of its own",
    reconnect "A restart costs nobody a lock or a place",
    renewal "A lock lasts while it is renewed",
    timeouts "Time limits are kept, down to zero",
    operators "Locks can be listed and taken away";
    others:
    unpolled "What nobody collects is handed on",
    vain_waits "A wait in vain is no outage",
    sharing "Shared locks: no reader beside a writer",
    permits "Semaphores: never more than the permits",
    sets "Several locks at once: all or none",
    election "Elections: one leads, all see who",
    detach "A lock that is left is taken up once";
);
