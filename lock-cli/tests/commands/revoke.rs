//! `distlock revoke`, and its effect on holders and waiters.

use std::{
    io::{BufRead, BufReader, Write},
    process::Stdio,
};

use super::loss::revoke;
use crate::{
    place::{Place, said},
    stores::on_every_store,
};

on_every_store!(a_revoked_waiter_says_so);

fn a_revoked_waiter_says_so(place: &Place) {
    let mut holder = place.hold("x");
    let waiter = place.command(&["run", "x", "true"]).stderr(Stdio::piped()).spawn().unwrap();
    place.await_waiters("x", 1);
    let id = place.show("x")["waiters"][0]["attempt"].as_str().unwrap().to_owned();
    assert_eq!(place.run(&["revoke", "x", &id, "--yes"]).0, Some(0));
    let (code, _, error) = said(&waiter.wait_with_output().unwrap());
    assert!(code == Some(79) && error.contains("lost the place in line"), "{code:?}: {error}");
    holder.say("\n");
    assert_eq!(holder.end(), Some(0));
}

#[test]
fn a_command_that_outlives_its_lock_is_reported() {
    let place = Place::new();
    let mut run =
        place.command(&["run", "x", "--on-lost", "ignore", "--", "sh", "-c", "read line"]);
    let mut run = run.stdin(Stdio::piped()).stderr(Stdio::piped()).spawn().unwrap();
    place.await_holders("x", 1);
    revoke(&place);
    let mut line = String::new();
    BufReader::new(run.stderr.take().unwrap()).read_line(&mut line).unwrap();
    assert!(line.contains("the lock was lost and the command goes on: "), "{line}");
    run.stdin.take().unwrap().write_all(b"\n").unwrap();
    assert_eq!(run.wait().unwrap().code(), Some(0));
}
