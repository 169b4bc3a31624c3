//! What happens to a command that loses its lock.

use crate::place::{Place, Process, lives};

/// Says its number, and does not end when it is asked to.
const DEAF: [&str; 3] = ["sh", "-c", "trap '' TERM; echo $$; read line; exit 6"];

fn holder(place: &Place, options: &[&'static str]) -> Process {
    place.start(&[&["run", "x"], options, &["--"], &DEAF].concat())
}

fn revoke(place: &Place) {
    let shown = place.show("x");
    let id = shown["holders"][0]["id"].as_str().expect("an id");
    assert_eq!(place.run(&["revoke", "x", &id[..8], "--yes"]).0, Some(0));
}

#[test]
fn a_revoked_command_is_killed_at_once() {
    let place = Place::new();
    let mut run = holder(&place, &[]);
    let pid = run.line();
    revoke(&place);
    assert_eq!(run.end(), Some(79));
    assert!(!lives(&pid), "{pid} lives on");
}

#[test]
fn a_command_ends_at_its_longest_hold() {
    let place = Place::new();
    for policy in ["kill", "term:100ms"] {
        let mut run = holder(&place, &["--max-hold", "500ms", "--on-lost", policy]);
        let pid = run.line();
        assert_eq!(run.end(), Some(79), "{policy}");
        assert!(!lives(&pid), "{policy}: {pid} lives on");
    }
}

#[test]
fn a_command_may_outlive_its_lock_if_it_is_said_so() {
    let place = Place::new();
    let mut run = holder(&place, &["--on-lost", "ignore"]);
    let pid = run.line();
    revoke(&place);
    assert!(!place.is_busy("x"));
    assert!(lives(&pid), "{pid} was ended");
    run.say("\n");
    assert_eq!(run.end(), Some(6));
}
