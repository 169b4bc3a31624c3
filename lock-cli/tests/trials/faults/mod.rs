//! No process of a command runs when another client has its lock: processes of `distlock run` that
//! are killed, stopped and cut off, on real stores. The commands write their tokens into one log.
//!
//! `DISTLOCK_ROUNDS` is the number of faults per store: by default one of each kind, and 200 with
//! `DISTLOCK_LONG`. `DISTLOCK_CROWD` is the number of other idle processes on the machine; none by
//! default. With 2000, a look at all processes before the kill is too late.

mod child;
mod crowd;
mod holder;
mod log;
mod record;
mod round;
mod stage;

use std::process::ExitCode;

use libtest_mimic::Trial;

pub use crowd::Crowd;

/// What this process does if it is one of the command's processes.
pub fn as_child() -> Option<ExitCode> {
    let role = std::env::var_os(child::ROLE)?;
    Some(child::play(&role.to_string_lossy()))
}

pub fn trials() -> impl Iterator<Item = Trial> {
    stage::stores().map(|store| {
        Trial::test(format!("faults::{store}::nothing_outlives_its_lock"), move || {
            let mut runtime = tokio::runtime::Builder::new_multi_thread();
            let runtime = runtime.worker_threads(2).enable_all().build()?;
            Ok(runtime.block_on(round::play(store))?)
        })
    })
}

/// The other processes of the machine.
pub fn crowd() -> Crowd {
    let crowd = std::env::var("DISTLOCK_CROWD").map_or(0, |crowd| crowd.parse().expect("a number"));
    Crowd::gather(crowd)
}
