//! The tests that need a `main` of their own: lists that are made when the program starts, and
//! processes that are this program again. The environment says which part such a process plays.

mod chaos;
mod examples;
mod faults;
mod sets;
mod suite;
#[path = "../support/mod.rs"]
mod support;

use std::{process::ExitCode, sync::Arc};

use libtest_mimic::Arguments;

fn main() -> ExitCode {
    let parts = [chaos::guest::visit, examples::example, faults::hold, sets::lock_sets];
    if let Some(code) = parts.into_iter().find_map(|part| part()) {
        return code;
    }
    let mut arguments = Arguments::from_args();
    // They mostly wait.
    arguments.test_threads.get_or_insert(8);
    let report = Arc::new(suite::Report::default());
    let trials = [
        chaos::trials(),
        sets::trials(),
        faults::trials(),
        examples::trials(),
        suite::trials(&report),
    ];
    let conclusion = libtest_mimic::run(&arguments, trials.into_iter().flatten().collect());
    report.print(&suite::stores::missing());
    conclusion.exit_code()
}
