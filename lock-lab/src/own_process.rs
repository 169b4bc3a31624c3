//! A test in a process of its own.

use std::{env, process::Command};

const OWNER: &str = "LOCK_LAB_OWN_PROCESS";

/// Gives the calling test a process of its own: for what a whole process has once, such as the
/// subscriber of traces, the environment or the limits.
///
/// In that process it returns true. In the test program it starts that process, which runs this
/// test alone, waits for its end and returns false.
///
/// `test` is the test's full name, such as `hidden::no_password_is_shown`.
///
/// ```no_run
/// # // A test:
/// fn no_password_is_shown() {
///     if !lock_lab::in_own_process("hidden::no_password_is_shown") {
///         return;
///     }
///     // ..
/// }
/// ```
///
/// Panics with the output of that process if the test fails there, or if there is no such test.
pub fn in_own_process(test: &str) -> bool {
    if env::var_os(OWNER).is_some_and(|owner| owner == test) {
        return true;
    }
    let mut command = Command::new(env::current_exe().expect("this program has a path"));
    command.args([test, "--exact", "--nocapture", "--include-ignored", "--test-threads=1"]);
    let output = command.env(OWNER, test).output().expect("this program can be started again");
    let said = String::from_utf8_lossy(&output.stdout);
    assert!(
        output.status.success() && said.contains("1 passed"),
        "{test} in a process of its own: {}\n{said}\n{}",
        output.status,
        String::from_utf8_lossy(&output.stderr)
    );
    false
}
