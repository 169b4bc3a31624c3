//! A test in a process of its own.

use std::{env, fs, process, process::Command};

use lock_lab::in_own_process;

/// What the test below does in its own process, and the file in which it says who it is.
const PART: &str = "LOCK_LAB_PART";
const FILE: &str = "LOCK_LAB_FILE";

/// A test that needs a process of its own, in each of its processes.
#[test]
#[ignore = "only a part of the other tests"]
fn needs_a_process() {
    let Ok(part) = env::var(PART) else { return };
    println!("in process {}", process::id());
    let is_missing = part == "is missing";
    let name = if is_missing { "own_process::nobody" } else { "own_process::needs_a_process" };
    if !in_own_process(name) {
        return;
    }
    fs::write(env::var_os(FILE).expect("a file"), process::id().to_string())
        .expect("it is written");
    assert_ne!(part, "fails", "as it was told");
}

/// Runs the test above. Returns whether it passes, what is printed, and what its file says.
fn play(part: &str) -> (bool, String, String) {
    let file = tempfile::NamedTempFile::new().unwrap();
    let mut test = Command::new(env::current_exe().unwrap());
    test.args(["--exact", "own_process::needs_a_process", "--include-ignored", "--nocapture"]);
    let output = test.env(PART, part).env(FILE, file.path()).output().unwrap();
    let said = [output.stdout, output.stderr].concat();
    let said = String::from_utf8_lossy(&said).into_owned();
    (output.status.success(), said, fs::read_to_string(&file).unwrap())
}

#[test]
fn a_test_runs_in_a_process_of_its_own_alone() {
    let (passes, said, own) = play("passes");
    assert!(passes, "{said}");
    let (_, outer) = said.split_once("in process ").unwrap();
    let outer = outer.lines().next().unwrap();
    assert!(!own.is_empty() && own != outer, "{own} in {outer}");
}

#[test]
fn a_failure_in_its_own_process_is_a_failure_that_shows_the_cause() {
    let (passes, said, own) = play("fails");
    assert!(!passes && !own.is_empty(), "{said}");
    assert!(said.contains("own_process::needs_a_process in a process of its own: "), "{said}");
    assert!(said.contains("as it was told"), "{said}");
}

#[test]
fn a_wrong_name_is_a_failure() {
    let (passes, said, own) = play("is missing");
    assert!(!passes && own.is_empty(), "{said}");
    assert!(said.contains("own_process::nobody in a process of its own: "), "{said}");
}
