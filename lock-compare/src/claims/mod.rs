//! The claims of the articles, one file each.
//!
//! A claim is a `const` with its texts, and a type that plays it. What several of them play is in
//! `contestant`, `printed` and `keys`.

mod c01_mutual_exclusion;
mod c05_set_and_expire;
mod c07_bare_delete;
mod c12_fair_queue;
mod c13_dead_waiter;
mod c17_one_round_trip;
mod c18_znodes;
mod c19_polling_costs;
mod c20_unique_row;
mod c23_late_write;
mod c24_fastest;
mod c28_atomic_decrement;
mod c29_three_ways;
mod c35_script;
mod c40_crossover;

pub(crate) use self::c35_script::Seen;
use crate::Experiment;

/// All experiments, by the numbers of their claims.
pub fn all() -> &'static [&'static dyn Experiment] {
    &[
        &c01_mutual_exclusion::MutualExclusion,
        &c05_set_and_expire::SetAndExpire,
        &c07_bare_delete::BareDelete,
        &c12_fair_queue::FairQueue,
        &c13_dead_waiter::DeadWaiter,
        &c17_one_round_trip::OneRoundTrip,
        &c18_znodes::Znodes,
        &c19_polling_costs::PollingCosts,
        &c20_unique_row::UniqueRow,
        &c23_late_write::LateWrite,
        &c24_fastest::Fastest,
        &c28_atomic_decrement::AtomicDecrement,
        &c29_three_ways::ThreeWays,
        &c35_script::Script,
        &c40_crossover::Crossover,
    ]
}
