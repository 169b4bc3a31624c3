//! The trials whose processes are this program, too.

#![cfg(target_os = "linux")]

mod faults;

use std::process::ExitCode;

use libtest_mimic::Arguments;

fn main() -> ExitCode {
    if let Some(end) = faults::as_child() {
        return end;
    }
    let mut arguments = Arguments::from_args();
    arguments.test_threads.get_or_insert(8);
    let _crowd = faults::crowd();
    libtest_mimic::run(&arguments, faults::trials().collect()).exit_code()
}
