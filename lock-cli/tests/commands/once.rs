//! `distlock run --once-per`, and the marks that it leaves.

use std::{io::Write, process::Stdio};

use rustix::process::Signal;

use super::loss::revoke;
use crate::{
    place::{Place, Process, said},
    stores::on_every_store,
};

on_every_store!(what_is_done_is_not_done_again, what_did_not_succeed_is_done_again);

const RUN: [&str; 6] = ["run", "x", "--once-per", "1h", "echo", "works"];

/// Also while the lock is held. An operator has it done again.
fn what_is_done_is_not_done_again(place: &Place) {
    let (code, out, error) = place.run(&RUN);
    assert_eq!((code, out.as_str()), (Some(0), "works\n"), "{error}");
    let mut holder = place.hold("x");
    let (code, out, error) = place.run(&RUN);
    assert_eq!((code, out.as_str()), (Some(0), ""), "{error}");
    assert!(error.contains("distlock: done on "), "{error}");
    assert!(!place.run(&[&RUN[..4], &["--quiet", "true"]].concat()).2.contains("done on"));
    holder.say("\n");
    assert_eq!(holder.end(), Some(0));
    let shown = place.show("x");
    assert!(shown["done"]["token"].is_u64() && shown["holders"][0].is_null(), "{shown}");
    let (_, listed, _) = place.run(&["ls", "--json"]);
    let listed: serde_json::Value = serde_json::from_str(&listed).unwrap();
    assert_eq!(listed[0]["name"], "x");
    assert_eq!(listed[0]["done"], shown["done"]);
    assert!(place.run(&["ls"]).1.contains("x: done on "));
    let clear = ["revoke", "x", "--done", "--yes"];
    assert_eq!([(); 2].map(|()| place.run(&clear).0), [Some(0), Some(1)]);
    assert_eq!(place.run(&RUN).1, "works\n");
}

/// The command ends with 0 when a signal asks it to end, which does not tell whether it succeeded.
fn what_did_not_succeed_is_done_again(place: &Place) {
    let fails = [&RUN[..4], &["--", "sh", "-c", "exit 3"]].concat();
    assert_eq!(place.run(&fails).0, Some(3));
    let script = "trap 'exit 0' TERM HUP INT; echo begun; while :; do sleep 0.1; done";
    for signal in [Signal::TERM, Signal::HUP, Signal::INT] {
        // Also where the tests run with some signals ignored.
        let program = ["--default-signal", env!("CARGO_BIN_EXE_distlock")];
        let asked = [program.as_slice(), &RUN[..4], &["--", "sh", "-c", script]].concat();
        let mut asked = Process::of(place.other("env", &asked));
        assert_eq!(asked.line(), "begun");
        asked.signal(signal);
        assert_eq!(asked.end(), Some(0), "{signal:?}");
        assert!(place.show("x")["done"].is_null(), "{signal:?}");
    }
    assert_eq!(place.run(&RUN).1, "works\n");
}

#[test]
fn a_command_that_outlives_its_lock_leaves_no_mark() {
    let place = Place::new();
    let run = [&RUN[..4], &["--on-lost", "ignore", "--", "sh", "-c", "read line"]].concat();
    let mut run = place.command(&run);
    let mut run = run.stdin(Stdio::piped()).stderr(Stdio::piped()).spawn().unwrap();
    place.await_holders("x", 1);
    revoke(&place);
    run.stdin.take().unwrap().write_all(b"\n").unwrap();
    let (code, _, error) = said(&run.wait_with_output().unwrap());
    assert_eq!(code, Some(0), "{error}");
    assert!(error.contains("the work may be done again"), "{error}");
    assert!(place.show("x")["done"].is_null());
}

#[test]
fn work_that_is_longer_than_its_period_leaves_no_mark() {
    let place = Place::new();
    let (code, _, error) = place.run(&["run", "x", "--once-per", "50ms", "sleep", "0.2"]);
    assert_eq!(code, Some(0), "{error}");
    assert!(error.contains("the period was over before the work was done"), "{error}");
    assert!(place.show("x")["done"].is_null());
}

#[test]
fn periods_and_kinds_without_marks_are_refused() {
    let place = Place::new();
    for (options, code) in [
        (["--once-per", "0s"].as_slice(), 64),
        (&["--once-per", "1h", "--shared"], 64),
        (&["--once-per", "1h", "--permits", "2"], 64),
    ] {
        let run = [&["run", "x"] as &[_], options, &["echo", "works"]].concat();
        let (refused, out, error) = place.run(&run);
        assert_eq!((refused, out.as_str()), (Some(code), ""), "{options:?}: {error}");
    }
    let (code, _, error) = place.run(&["revoke", "x", "--done", "--yes"]);
    assert!(code == Some(1) && error.contains("no work of x is marked as done"), "{error}");
    assert_eq!(place.run(&["revoke", "x", "--yes"]).0, Some(64));
}
