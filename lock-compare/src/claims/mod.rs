//! The claims of the articles, one file each.
//!
//! A claim is a `const` with its texts, and a type that plays it. Parts used by several of them are
//! in `scenario`, `contestant`, `printed` and `keys`.

mod c01_mutual_exclusion;
mod c02_crashed_holder;
mod c03_cut_off_holder;
mod c04_only_the_holder_releases;
mod c05_set_and_expire;
mod c06_fixed_ttl;
mod c07_bare_delete;
mod c08_failover;
mod c09_redlock;
mod c10_leader_dies;
mod c11_closed_or_orphaned;
mod c12_fair_queue;
mod c13_dead_waiter;
mod c14_try_leaves_nothing;
mod c15_giving_up;
mod c16_own_place_checked;
mod c17_one_round_trip;
mod c18_znodes;
mod c19_polling_costs;
mod c20_unique_row;
mod c21_election;
mod c22_command_line;
mod c23_late_write;
mod c24_fastest;
mod c25_told_to_stop;
mod c26_lost_node;
mod c27_same_session_twice;
mod c28_atomic_decrement;
mod c29_three_ways;
mod c30_held_by_hand;
mod c31_waiter_keeps_alive;
mod c32_separator;
mod c33_renewal;
mod c34_create_revision;
mod c35_script;
mod c36_ephemeral;
mod c37_orphaned_session;
mod c38_campaign_again;
mod c39_errors;
mod c40_crossover;
mod c41_cleaned_up;
mod c42_split_brain;
mod c43_unchecked_key;
mod c44_printed_delete;

use crate::Experiment;

/// All experiments, by the numbers of their claims.
pub fn all() -> &'static [&'static dyn Experiment] {
    &[
        &c01_mutual_exclusion::MutualExclusion,
        &c02_crashed_holder::CrashedHolder,
        &c03_cut_off_holder::CutOffHolder,
        &c04_only_the_holder_releases::OnlyTheHolderReleases,
        &c05_set_and_expire::SetAndExpire,
        &c06_fixed_ttl::FixedTtl,
        &c07_bare_delete::BareDelete,
        &c08_failover::Failover,
        &c09_redlock::RedlockClaim,
        &c10_leader_dies::LeaderDies,
        &c11_closed_or_orphaned::ClosedOrOrphaned,
        &c12_fair_queue::FairQueue,
        &c13_dead_waiter::DeadWaiter,
        &c14_try_leaves_nothing::TryLeavesNothing,
        &c15_giving_up::GivingUp,
        &c16_own_place_checked::OwnPlaceChecked,
        &c17_one_round_trip::OneRoundTrip,
        &c18_znodes::Znodes,
        &c19_polling_costs::PollingCosts,
        &c20_unique_row::UniqueRow,
        &c21_election::LeaderElection,
        &c22_command_line::CommandLine,
        &c23_late_write::LateWrite,
        &c24_fastest::Fastest,
        &c25_told_to_stop::ToldToStop,
        &c26_lost_node::LostNode,
        &c27_same_session_twice::SameSessionTwice,
        &c28_atomic_decrement::AtomicDecrement,
        &c29_three_ways::ThreeWays,
        &c30_held_by_hand::HeldByHand,
        &c31_waiter_keeps_alive::WaiterKeepsAlive,
        &c32_separator::Separator,
        &c33_renewal::Renewal,
        &c34_create_revision::CreateRevision,
        &c35_script::Script,
        &c36_ephemeral::Ephemerals,
        &c37_orphaned_session::OrphanedSession,
        &c38_campaign_again::CampaignAgain,
        &c39_errors::Errors,
        &c40_crossover::Crossover,
        &c41_cleaned_up::CleanedUp,
        &c42_split_brain::SplitBrain,
        &c43_unchecked_key::UncheckedKey,
        &c44_printed_delete::PrintedDelete,
    ]
}
