//! Clusters in networks whose links are cut.

#[path = "../../../tests/shared/beat.rs"]
mod beat;
mod cluster;
mod load;
#[path = "../../../tests/shared/remote.rs"]
mod remote;
mod secure_cluster;
mod secured;
#[path = "../support/clients.rs"]
mod support;

lock_lab::network_tests!(
    cluster::a_waiter_leaves_a_member_without_a_leader,
    cluster::waiters_go_on_without_overlap_when_the_leader_is_killed,
    cluster::waiters_go_on_without_overlap_when_the_leader_is_isolated,
    cluster::waiters_go_on_without_overlap_when_the_leader_is_cut_off_from_its_peers,
    cluster::a_shared_client_goes_on_when_the_leader_is_killed,
    cluster::a_shared_client_goes_on_when_the_leader_is_isolated,
    secure_cluster::every_promise_is_kept_over_tls_with_logins,
    secure_cluster::no_lock_is_lost_and_waiters_go_on_when_leaders_are_killed,
);
