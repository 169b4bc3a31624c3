//! `distlock hold`: a lock without a command.

use std::process::Stdio;

use rustix::process::Signal;

use super::{loss::revoke, output::broken};
use crate::{
    place::{Place, Process, said},
    stores::on_every_store,
};

/// Reads the line that it holds the lock `x`, and returns its token.
fn token(process: &mut Process) -> u64 {
    let line = process.line();
    let token = line.strip_prefix("holding x with token ").and_then(|token| token.parse().ok());
    token.unwrap_or_else(|| panic!("{line:?}"))
}

/// Holds the lock `x`. The program hears each signal, also where the tests run with some ignored:
/// under `nohup`, in the background of a shell.
fn hold(place: &Place) -> Process {
    let program = ["--default-signal", env!("CARGO_BIN_EXE_distlock")];
    let arguments = ["hold", "x", "--ttl", "10s"];
    Process::of(place.other("env", &[program.as_slice(), &arguments].concat()))
}

on_every_store!(it_goes_from_hand_to_hand);

/// Same as two terminals with `etcdctl lock x`: the second prints its line when the first ends.
fn it_goes_from_hand_to_hand(place: &Place) {
    let mut first = hold(place);
    let mut tokens = vec![token(&mut first)];
    for signal in [Signal::INT, Signal::TERM, Signal::HUP] {
        assert_eq!(place.show("x")["holders"][0]["token"].as_u64(), tokens.last().copied());
        let mut next = hold(place);
        place.await_waiters("x", 1);
        first.signal(signal);
        assert_eq!(first.end(), Some(0), "{signal:?}");
        tokens.push(token(&mut next));
        first = next;
    }
    assert!(tokens.is_sorted_by(|earlier, later| earlier < later), "{tokens:?}");
    first.signal(Signal::TERM);
    assert_eq!(first.end(), Some(0));
    assert!(!place.is_busy("x"), "it was left to its TTL");
}

#[test]
fn a_loss_is_reported_with_its_code() {
    let place = Place::new();
    for (options, reason) in
        [(&["--max-hold", "300ms"] as &[&str], "maximum hold time"), (&[], "revoked")]
    {
        let mut hold = place.command(&[&["hold", "x"], options].concat());
        let hold = hold.stdout(Stdio::null()).stderr(Stdio::piped()).spawn().expect("it starts");
        if reason == "revoked" {
            place.await_holders("x", 1);
            revoke(&place);
        }
        let (code, _, error) = said(&hold.wait_with_output().expect("its end"));
        let told = error.contains("the lock was lost: ") && error.contains(reason);
        assert!(code == Some(79) && told, "{code:?}: {error}");
    }
}

#[test]
fn it_takes_the_options_of_run() {
    let place = Place::new();
    let mut writer = place.start(&["hold", "x"]);
    token(&mut writer);
    assert_eq!(place.run(&["hold", "x", "--no-wait"]).0, Some(75));
    assert_eq!(place.run(&["hold", "x", "--wait", "1s"]).0, Some(124));
    let mut readers: Vec<_> = (0..2).map(|_| place.start(&["hold", "x", "--shared"])).collect();
    place.await_waiters("x", 2);
    writer.signal(Signal::TERM);
    assert_eq!(writer.end(), Some(0));
    let tokens: Vec<_> = readers.iter_mut().map(token).collect();
    assert_ne!(tokens[0], tokens[1]);
    let permit = ["hold", "p", "--permits", "1", "--json"];
    let line = place.start(&permit).line();
    let object: serde_json::Value = serde_json::from_str(&line).expect("an object");
    assert!(object["name"] == "p" && object["token"].as_u64().is_some(), "{line}");
}

#[test]
fn a_waiter_that_is_asked_to_end_was_no_holder() {
    let place = Place::new();
    let mut holder = place.start(&["hold", "x"]);
    token(&mut holder);
    let mut waiter = place.start(&["hold", "x"]);
    place.await_waiters("x", 1);
    waiter.signal(Signal::TERM);
    assert_eq!(waiter.line(), "", "it said that it holds the lock");
    assert_eq!(waiter.end(), Some(143));
}

#[test]
fn a_holder_that_cannot_print_releases() {
    let place = Place::new();
    for stdout in broken() {
        let mut hold = place.command(&["hold", "x", "--ttl", "1h"]);
        let (code, _, error) = said(&hold.stdout(stdout).stderr(Stdio::piped()).output().unwrap());
        assert!(code == Some(71) && error.contains("saying that it holds"), "{code:?}: {error}");
        assert!(!place.is_busy("x"), "it left the lock behind");
    }
}

/// A script whose command is an empty variable must not hold the lock for ever.
#[test]
fn run_without_a_command_is_refused_and_names_hold() {
    let place = Place::new();
    for arguments in [&["run", "x"] as &[&str], &["run", "x", "--"]] {
        let (code, _, error) = place.run(arguments);
        assert!(code == Some(64) && error.contains("distlock hold"), "{arguments:?}: {error}");
    }
}
