//! The driver on servers in networks that can be cut, or the reason why there is no network.

#[path = "../lab/base.rs"]
mod base;
#[path = "../lab/checks.rs"]
mod checks;
mod cluster_properties;
mod deployed;
#[path = "../lab/fenced.rs"]
mod fenced;
mod partition;
mod sentinel_properties;

lock_lab::network_tests!(
    // They take longest.
    cluster_properties::all_properties_are_kept,
    sentinel_properties::all_properties_are_kept,
    partition::with_all_replicas_one_side_holds_at_a_time,
    partition::with_one_replica_of_two_both_sides_hold_and_the_token_decides,
    partition::without_replicas_both_sides_hold_and_the_token_decides,
);
