//! The drawing on a terminal, byte by byte.

use std::{os::unix::process::ExitStatusExt, process::Stdio};

use rustix::process::{Pid, Signal, kill_process};

use super::pty::Pty;
use crate::place::Place;

const CLEAR: &str = "\r\x1b[2K";
const HOME: &str = "\x1b[H\x1b[J";

#[test]
fn without_a_wait_the_line_stays_as_it_is() {
    let place = Place::new();
    let mut screen = Pty::open(80, 24);
    let mut run = place.command(&["run", "x", "--", "echo", "done"]);
    let (out, error) = (screen.other_side(), screen.other_side());
    assert_eq!(run.stdout(out).stderr(error).status().unwrap().code(), Some(0));
    drop(run);
    assert_eq!(screen.until("no such text").unwrap_err(), "done\r\n");
}

#[test]
fn a_waiter_draws_on_a_line_of_its_own_and_clears_it() {
    let place = Place::new();
    let _holder = place.hold("x");
    let mut screen = Pty::open(40, 24);
    let mut run = place.command(&["run", "x", "true"]);
    let mut waiter = run.stderr(Stdio::from(screen.other_side())).spawn().unwrap();
    drop(run);
    // To the end of the line, which may have text.
    assert_eq!(screen.until("waiting for x").unwrap(), format!("{}{CLEAR}", " ".repeat(40)));
    kill_process(Pid::from_child(&waiter), Signal::TERM).unwrap();
    assert_eq!(waiter.wait().unwrap().signal(), Some(Signal::TERM.as_raw()));
    let rest = screen.until("no such text").unwrap_err();
    assert!(rest.ends_with(CLEAR), "{rest:?}");
    let line = rest.split(CLEAR).next().unwrap();
    assert!(line.ends_with('…') && line.chars().count() + "waiting for x".len() == 39, "{line:?}");
}

#[test]
fn the_live_view_fits_on_the_terminal() {
    let place = Place::new();
    let names = ["a", "b", "c", "d", "e", "f"];
    let holders = names.map(|name| place.hold(name));
    let mut screen = Pty::open(30, 6);
    let mut watch = place.command(&["watch"]);
    let mut watching = watch.stdout(Stdio::from(screen.other_side())).spawn().unwrap();
    drop(watch);
    screen.until(HOME).unwrap();
    let drawn = screen.until(HOME).unwrap();
    watching.kill().and_then(|()| watching.wait()).unwrap();
    drop(holders);
    let lines: Vec<_> = drawn.lines().collect();
    assert!(lines.iter().all(|line| line.chars().count() <= 30), "{drawn}");
    assert!(lines[2].starts_with("NAME") && lines[3].starts_with("a "), "{drawn}");
    assert_eq!((lines.len(), lines[4]), (5, "… 5 more"), "{drawn}");
    // Nothing scrolls: the last line has room for the cursor.
    assert!(drawn.ends_with("more\r\n"), "{drawn:?}");
}
