//! Locks on real servers.

mod basics;
mod burst;
mod connecting;
#[path = "../../tests/shared/contend.rs"]
mod contend;
mod convert;
mod crowd;
mod detach;
mod election;
mod faults;
mod floor;
mod full;
mod hidden;
mod interop;
mod kinds;
mod large;
mod late;
mod logins;
mod losses;
mod model;
mod operate;
mod outage;
mod own_client;
mod queue;
mod refused;
mod removals;
mod restored;
mod sets;
mod support;
mod suspended;
mod timeouts;
mod tls;
