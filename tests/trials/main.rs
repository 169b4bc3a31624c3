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

use libtest_mimic::{Arguments, Trial};

use self::support::Random;

fn main() -> ExitCode {
    let parts = [chaos::guest::visit, examples::example, faults::hold, sets::lock_sets];
    if let Some(code) = parts.into_iter().find_map(|part| part()) {
        return code;
    }
    let mut arguments = Arguments::from_args();
    // They mostly wait.
    arguments.test_threads.get_or_insert(9);
    let report = Arc::new(suite::Report::default());
    let loads = [chaos::trials(), sets::trials()].into_iter().flatten();
    let others = [faults::trials(), examples::trials(), suite::trials(&report)];
    let trials = spread(loads.collect(), others.into_iter().flatten().collect());
    let conclusion = libtest_mimic::run(&arguments, trials);
    report.print(&suite::stores::missing());
    conclusion.exit_code()
}

/// Spreads the trials that make a load of their own among the others. They begin in this order. The
/// others are mixed: beside a check of contention run checks that wait, and each store needs few
/// servers.
fn spread(loads: Vec<Trial>, mut others: Vec<Trial>) -> Vec<Trial> {
    others.sort_by_cached_key(|trial| Random::of(0, trial.name()).below(1 << 30));
    let each = others.len() / loads.len().max(1);
    let mut trials = Vec::new();
    for load in loads {
        trials.push(load);
        trials.extend(others.drain(..each));
    }
    trials.extend(others);
    trials
}
