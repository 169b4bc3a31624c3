//! The driver on three servers, in networks that can be cut.

mod alone;
#[path = "../checks/mod.rs"]
mod checks;
mod ensemble_properties;
mod leaders;
mod partition;
mod rights;
mod slow;
#[allow(dead_code, reason = "the other test program uses all of it")]
#[path = "../support/mod.rs"]
mod support;

use lock_lab::{Builder, LabError, Network, ZooKeeper, ZooKeeperCluster};

/// Starts three servers.
async fn cluster(
    builder: Builder<ZooKeeper>,
    network: &Network,
) -> Result<ZooKeeperCluster, LabError> {
    let _turn = support::STARTS.acquire().await.expect("nobody closes it");
    support::start(|| builder.clone().start_cluster(network)).await
}

lock_lab::network_tests!(
    alone::a_lock_after_a_pause_is_as_quick_and_lasts,
    alone::a_lock_of_the_shortest_ttl_is_not_at_risk,
    alone::leaders_are_killed_and_no_lock_is_lost,
    ensemble_properties::every_promise_is_kept_by_three_servers,
    partition::a_holder_beside_a_cut_off_follower_is_told_before_the_next_grant,
    partition::a_holder_beside_a_cut_off_leader_is_told_before_the_next_grant,
    partition::an_ensemble_that_does_not_know_its_members_is_no_standalone_server,
    partition::holding_survives_the_end_of_the_leader,
    partition::holding_survives_the_silence_of_a_follower,
    partition::holding_survives_the_silence_of_the_leader,
    rights::a_root_that_cannot_be_read_costs_no_lock,
    slow::a_lock_of_the_shortest_ttl_is_granted_by_slow_servers,
    slow::a_reader_that_is_alone_is_upgraded_by_a_server_that_lags,
);
