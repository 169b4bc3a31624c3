//! The executable properties: the promises of every driver, checked against its real store.
//!
//! A driver's author writes a [`Harness`] of about 30 lines, which supplies clients and faults, and
//! runs [`all`]. One file per property; each names its sources. Each is itself tested by a
//! deliberately broken lock in `distlock-memory` that exactly this property rejects.
//!
//! ```no_run
//! # mod distlock { pub use lock_core as driver; }
//! # async fn example(harness: &dyn lock_core::properties::Harness) {
//! for property in distlock::driver::properties::all() {
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
//! Each check needs a store of its own, or one that nothing else uses meanwhile: some restart it,
//! some count what is left in it. In a shared store, a harness may keep each check to its own
//! names, and return [`NotHere`] for anything that it cannot do.

mod as_mutex;
mod cancellation;
mod check;
mod conversions;
mod detach;
mod election;
mod fairness;
mod fencing;
mod guise;
mod harness;
mod liveness;
mod loss;
mod lost_answers;
mod mutual_exclusion;
mod names;
mod observers;
mod once;
mod operators;
mod outcome;
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

pub use as_mutex::{AS_MUTEX, AsMutex};
use check::property;
pub use check::{Check, Property};
pub use guise::Guise;
pub use harness::{Client, Harness};
pub use outcome::{Checked, Failure, Late, Missed, NotHere, Outcome};
use outcome::{Done, ensure, keeps, needs};

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
    operators "Locks can be listed and taken away",
    lost_answers "A lost answer is asked for again";
    others:
    unpolled "What nobody collects is handed on",
    vain_waits "A wait in vain is no outage",
    sharing "Shared locks: no reader beside a writer",
    conversions "A lock is converted once, or not at all",
    permits "Semaphores: never more than the permits",
    sets "Several locks at once: all or none",
    election "Elections: one leads, all see who",
    observers "Observers see who leads, and what it says",
    detach "A lock that is left is taken up once",
    once "Done once per period, and no mark in vain";
);
