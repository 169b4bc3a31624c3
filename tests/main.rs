//! The tests of the facade, on real servers. Those that need a `main` of their own are in `trials`.

#[macro_use]
mod support;

// The sources of the examples expect these two at the root of their program.
#[cfg(any(feature = "etcd", feature = "zookeeper"))]
#[path = "../examples/guarded/src/address.rs"]
mod address;
type Failure = Box<dyn std::error::Error + Send + Sync>;

mod blocking;
mod close;
mod configs;
mod connection;
mod counts;
mod fenced;
mod floor;
mod guarded;
mod handover;
mod input;
mod interop;
mod kinds;
mod leaks;
mod losses;
mod metrics;
mod naive;
mod pages;
mod runtimes;
mod secrets;
mod shutdown;
mod sizes;
mod sizing;
mod slewed;
mod standstill;
mod tracing;
mod waits;
