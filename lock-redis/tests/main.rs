//! The driver on private servers.

#[path = "../../tests/shared/contend.rs"]
mod contend;
mod lab;
#[path = "../../tests/shared/remote.rs"]
mod remote;

mod basics;
mod burst;
mod cluster;
mod cluster_failover;
mod cluster_faults;
mod cluster_migration;
mod cluster_redirected;
mod cluster_replicas;
mod costs;
mod crowds;
mod dead_waiters;
mod diagnosis;
mod election;
mod faults;
mod fences;
mod floor;
mod kinds;
mod kinds_faults;
mod layout;
mod observe;
mod operators;
mod own_client;
mod properties;
mod redlock;
mod redlock_access;
mod redlock_clocks;
mod redlock_close;
mod redlock_outage;
mod redlock_properties;
mod redlock_splits;
mod redlock_tokens;
mod refused;
mod renewals;
mod restored;
mod secure;
mod sentinel;
mod sets;
mod simple;
mod versions;
mod withdrawals;
mod wrong_logins;
