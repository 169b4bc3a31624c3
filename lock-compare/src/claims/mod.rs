//! The claims of the articles, one file each.
//!
//! A claim is a `const` with its texts, and a type that plays it. What several of them play is in
//! `contestant`, `printed` and `keys`.

mod c01_mutual_exclusion;
mod c07_bare_delete;
mod c08_failover;
mod c09_redlock;
mod c10_leader_dies;
mod c26_lost_node;
mod c42_split_brain;

use crate::Experiment;

/// All experiments, by the numbers of their claims.
pub fn all() -> &'static [&'static dyn Experiment] {
    &[
        &c01_mutual_exclusion::MutualExclusion,
        &c07_bare_delete::BareDelete,
        &c08_failover::Failover,
        &c09_redlock::RedlockClaim,
        &c10_leader_dies::LeaderDies,
        &c26_lost_node::LostNode,
        &c42_split_brain::SplitBrain,
    ]
}
