//! The store in memory, and what it shows of lock-core.

mod at_least;
mod blocking;
#[cfg(feature = "properties")]
mod broken;
mod clients;
mod close;
mod contract;
mod detach;
mod drain;
mod errors;
mod floor;
mod losses;
mod named;
mod network;
mod once;
mod owner;
mod run;
mod runtimes;
mod sets;
mod unpolled;
mod waits;
