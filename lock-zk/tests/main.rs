//! The driver on servers of its own.

mod basics;
mod burst;
mod cancelling;
mod checks;
mod clocks;
mod connecting;
#[path = "../../tests/shared/contend.rs"]
mod contend;
mod converting;
mod counts;
mod election;
mod election_counts;
mod faults;
mod floor;
mod foreign;
mod kind_counts;
mod kinds;
mod mixed;
mod model;
mod operators;
mod own_client;
mod properties;
mod refused;
mod resets;
mod restored;
mod rotation;
mod secure;
mod sequences;
mod sets;
mod sizes;
mod support;
