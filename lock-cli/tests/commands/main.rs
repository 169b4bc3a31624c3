//! What people type, and what they get: exit codes, output, signals. With real processes, on the
//! embedded store where the store does not matter.

#![cfg(all(target_os = "linux", feature = "sqlite"))]

mod elect;
mod failures;
mod loss;
mod place;
mod run;
mod shell;
mod terminal;
mod watch;
