//! A shell in a place, with the programs that a page speaks of.

use std::{path::Path, process::Command};

use crate::place::{Place, Process, said};

pub const PROGRAM: &str = env!("CARGO_BIN_EXE_distlock");

/// Writes an executable into the folder of the place.
///
/// Another process writes it: a process that another test forks meanwhile would keep the file open,
/// and a file that is open for writing cannot be executed.
pub fn program(place: &Place, name: &str, script: &str) {
    let path = place.path().join(name).display().to_string();
    let write = r#"mkdir -p "${1%/*}" && cat >"$1" && chmod 755 "$1""#;
    let mut shell = Process::of(place.other("sh", &["-c", write, "sh", &path]));
    shell.say(script);
    shell.close_stdin();
    assert_eq!(shell.end(), Some(0), "{name}");
}

/// Lines for bash, which ends at the first that fails. It has `distlock` in its `PATH`, and its
/// home is the folder of the place.
pub fn bash(place: &Place, lines: &str) -> Command {
    let mut bash = place.other("bash", &["-eo", "pipefail", "-c", lines]);
    let programs = Path::new(PROGRAM).parent().expect("a folder");
    bash.env("PATH", format!("{}:/usr/bin:/bin", programs.display()));
    bash.env("HOME", place.path()).current_dir(place.path());
    bash
}

/// Runs it to its end, which must be a good one, and returns what it prints.
pub fn printed(mut command: Command) -> String {
    let (code, text, error) = said(&command.output().expect("it starts"));
    assert_eq!(code, Some(0), "{error}");
    text
}
