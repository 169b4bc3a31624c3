//! The verdicts of the experiments, and the report in a browser.

mod report;
mod verdicts;

use std::process::ExitCode;

use libtest_mimic::Arguments;

fn main() -> ExitCode {
    let mut arguments = Arguments::from_args();
    if let Some(end) = verdicts::as_child(&arguments) {
        return end;
    }
    arguments.test_threads.get_or_insert(8);
    // The first trial plays the experiments of all verdicts. The pages are looked at meanwhile.
    let mut trials = verdicts::trials(&arguments);
    let others = trials.split_off(trials.len().min(1));
    trials.extend(report::trials());
    trials.extend(others);
    let conclusion = libtest_mimic::run(&arguments, trials);
    report::close();
    conclusion.exit_code()
}
