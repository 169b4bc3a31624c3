//! The claims of the articles, one file each.
//!
//! A claim is a `const` with its texts, and a type that plays it. What several of them play is in
//! `contestant`, `printed` and `keys`.

mod c01_mutual_exclusion;
mod c07_bare_delete;
mod c08_failover;
mod c09_redlock;
mod c10_leader_dies;
mod c21_election;
mod c26_lost_node;
mod c27_twice;
mod c34_create_revision;
mod c36_ephemeral;
mod c38_campaign_again;
mod c39_errors;
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
        &c21_election::LeaderElection,
        &c26_lost_node::LostNode,
        &c27_twice::Twice,
        &c34_create_revision::CreateRevision,
        &c36_ephemeral::Ephemerals,
        &c38_campaign_again::CampaignAgain,
        &c39_errors::Errors,
        &c42_split_brain::SplitBrain,
    ]
}
