//! No process of a command runs when another client has its lock: processes of `distlock run` that
//! are killed, stopped and cut off, on real stores. The commands write their tokens into one log.
//!
//! `DISTLOCK_ROUNDS` is the number of faults per store; 10 by default. `DISTLOCK_CROWD` is the
//! number of other idle processes on the machine; none by default. With 2000, a look at all
//! processes before the kill is too late.

#![cfg(target_os = "linux")]

mod child;
mod crowd;
mod holder;
mod log;
mod record;
mod round;
mod stage;

use libtest_mimic::{Arguments, Trial};

fn main() -> std::process::ExitCode {
    if let Some(role) = std::env::var_os(child::ROLE) {
        return child::play(&role.to_string_lossy());
    }
    let mut arguments = Arguments::from_args();
    arguments.test_threads.get_or_insert(4);
    let trials = stage::stores().map(|store| {
        Trial::test(format!("{store}::nothing_outlives_its_lock"), move || {
            let mut runtime = tokio::runtime::Builder::new_multi_thread();
            let runtime = runtime.worker_threads(2).enable_all().build()?;
            Ok(runtime.block_on(round::play(store))?)
        })
    });
    let crowd = std::env::var("DISTLOCK_CROWD").map_or(0, |crowd| crowd.parse().expect("a number"));
    let _crowd = crowd::Crowd::gather(crowd);
    libtest_mimic::run(&arguments, trials.collect()).exit_code()
}
