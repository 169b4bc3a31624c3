//! The claims of the articles, one file each.
//!
//! A claim is a `const` with its texts, and a function that plays it. Parts used by several of them are
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

use crate::{Experiment, experiment::Where};

macro_rules! experiments {
    ($($claim:ident: $place:ident,)*) => {
        &[$(Experiment {
            claim: &$claim::CLAIM,
            place: Where::$place,
            play: |stage| Box::pin($claim::run(stage)),
        }),*]
    };
}

/// All experiments, by the numbers of their claims.
pub fn all() -> &'static [Experiment] {
    ALL
}

static ALL: &[Experiment] = experiments! {
    c01_mutual_exclusion: Anywhere,
    c02_crashed_holder: Private,
    c03_cut_off_holder: Private,
    c04_only_the_holder_releases: Private,
    c05_set_and_expire: Private,
    c06_fixed_ttl: Anywhere,
    c07_bare_delete: Anywhere,
    c08_failover: Private,
    c09_redlock: Private,
    c10_leader_dies: Private,
    c11_closed_or_orphaned: Anywhere,
    c12_fair_queue: Private,
    c13_dead_waiter: Private,
    c14_try_leaves_nothing: Private,
    c15_giving_up: Anywhere,
    c16_own_place_checked: Anywhere,
    c17_one_round_trip: Private,
    c18_znodes: Private,
    c19_polling_costs: Private,
    c20_unique_row: Private,
    c21_election: Anywhere,
    c22_command_line: Anywhere,
    c23_late_write: Anywhere,
    c24_fastest: Alone,
    c25_told_to_stop: Anywhere,
    c26_lost_node: Private,
    c27_same_session_twice: Anywhere,
    c28_atomic_decrement: Private,
    c29_three_ways: Alone,
    c30_held_by_hand: Anywhere,
    c31_waiter_keeps_alive: Anywhere,
    c32_separator: Anywhere,
    c33_renewal: Anywhere,
    c34_create_revision: Private,
    c35_script: Private,
    c36_ephemeral: Private,
    c37_orphaned_session: Anywhere,
    c38_campaign_again: Private,
    c39_errors: Anywhere,
    c40_crossover: Private,
    c41_cleaned_up: Anywhere,
    c42_split_brain: Private,
    c43_unchecked_key: Private,
    c44_printed_delete: Anywhere,
};
