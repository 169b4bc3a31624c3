//! Exit codes, output and signals of real processes, on the embedded store where the store does not
//! matter.

#[cfg(all(feature = "bench", feature = "memory"))]
mod bench;
mod docs;
mod elect;
#[cfg(feature = "postgres")]
mod environment;
mod failures;
mod hold;
mod loss;
#[cfg(feature = "metrics")]
mod metrics;
mod nested;
mod once;
mod output;
mod pages;
mod pty;
mod revoke;
mod run;
mod schema;
mod screen;
#[cfg(feature = "redis")]
mod secrets;
mod shell;
mod surroundings;
mod terminal;
mod token_floor;
mod unreachable;
mod watch;
