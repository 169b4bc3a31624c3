//! The API for applications.

// First, so that the documentation of `Locks` begins with the methods that make locks.
pub(crate) mod locks;

mod adopt;
pub(crate) mod client;
mod close;
pub(crate) mod connect;
mod connection;
pub(crate) mod diagnose;
pub(crate) mod election;
pub(crate) mod gate;
pub(crate) mod guard;
pub(crate) mod held;
mod hold;
pub(crate) mod lock;
mod marks;
pub(crate) mod once;
mod operators;
pub(crate) mod options;
pub(crate) mod owner;
mod raise_floor;
pub(crate) mod run;
pub(crate) mod semaphore;
pub(crate) mod set;
#[cfg(feature = "signal")]
pub(crate) mod signal;
