//! `distlock run` without a loss.

use std::time::Duration;

use lock_core::Clock;
use rustix::process::Signal;

use crate::place::{Place, lives};

/// Prints its token, and ends at a line.
const UNTIL_TOLD: [&str; 3] = ["sh", "-c", "echo $DISTLOCK_TOKEN; read line; exit 0"];

#[test]
fn the_exit_code_is_the_commands() {
    let place = Place::new();
    for (script, code) in [("exit 0", 0), ("exit 7", 7), ("kill -9 $$", 137)] {
        assert_eq!(place.run(&["run", "x", "--", "sh", "-c", script]).0, Some(code), "{script}");
    }
    assert_eq!(place.run(&["run", "x", "nothing-of-this-name"]).0, Some(127));
    assert_eq!(place.run(&["run", "x", "/etc/passwd"]).0, Some(126));
}

#[test]
fn the_command_knows_its_lock() {
    let place = Place::new();
    let script = "echo $DISTLOCK_NAME $DISTLOCK_TOKEN $DISTLOCK_STORE $DISTLOCK_DEADLINE_MS";
    let (_, known, _) = place.run(&["run", "a name", "--ttl", "1h", "--", "sh", "-c", script]);
    let Some(["a", "name", token, store, deadline]) =
        known.split_whitespace().collect::<Vec<_>>().first_chunk().copied()
    else {
        panic!("{known}")
    };
    assert_eq!(store, format!("sqlite:{}", place.path().join("db").display()));
    assert!(token.parse::<u64>().is_ok_and(|token| token > 0), "{token}");
    let uptime = std::fs::read_to_string("/proc/uptime").unwrap();
    let uptime: f64 = uptime.split(' ').next().unwrap().parse().unwrap();
    let left = deadline.parse::<f64>().unwrap() / 1000.0 - uptime;
    assert!((3000.0..3600.0).contains(&left), "{left} s are left of an hour");
}

#[test]
fn a_lock_is_released_and_not_lost_at_the_end() {
    let place = Place::new();
    let (code, _, log) = place.run(&["run", "x", "--log", "warn", "true"]);
    assert_eq!((code, log.as_str()), (Some(0), ""));
    let (code, _, log) = place.run(&["run", "x", "--log", "info", "true"]);
    assert!(code == Some(0) && log.contains(" released ") && !log.contains(" lost "), "{log}");
}

#[test]
fn one_at_a_time() {
    let place = Place::new();
    let mut first = place.start(&[&["run", "x", "--"] as &[_], &UNTIL_TOLD].concat());
    let token = first.line();
    assert!(place.is_busy("x"));
    assert_eq!(place.run(&["run", "x", "--wait", "1s", "true"]).0, Some(124));
    assert_eq!(place.show("x")["holders"][0]["token"].to_string(), token);
    let mut second = place.start(&["run", "x", "--", "sh", "-c", "echo $DISTLOCK_TOKEN"]);
    place.await_waiters("x", 1);
    first.say("\n");
    assert_eq!(first.end(), Some(0));
    let next = second.line();
    assert!(next.parse::<u64>().unwrap() > token.parse().unwrap(), "{next} after {token}");
    assert_eq!(second.end(), Some(0));
}

#[test]
fn two_permits_admit_two_holders() {
    let place = Place::new();
    let two = |rest: &[&'static str]| [&["run", "x", "--permits", "2"], rest].concat();
    let holds = two(&[&["--"] as &[_], &UNTIL_TOLD].concat());
    let (mut first, mut second) = (place.start(&holds), place.start(&holds));
    assert_ne!(first.line(), second.line());
    assert_eq!(place.run(&two(&["--no-wait", "true"])).0, Some(75));
    // As in a rolling deploy: a try is refused, and a waiter waits for the others' end.
    let three = |rest: &[&'static str]| [&["run", "x", "--permits", "3"], rest].concat();
    let (code, _, error) = place.run(&three(&["--no-wait", "true"]));
    assert!(code == Some(78) && error.contains("with 2 permits"), "{code:?}: {error}");
    let (code, _, error) = place.run(&three(&["--wait", "1s", "true"]));
    assert!(code == Some(124) && error.contains("held by"), "{code:?}: {error}");
    let mut waiter = place.start(&three(&["--log", "warn", "--", "echo", "granted"]));
    first.say("\n");
    assert_eq!(first.end(), Some(0));
    assert_eq!(place.run(&two(&["--no-wait", "true"])).0, Some(0));
    second.say("\n");
    assert_eq!(second.end(), Some(0));
    assert_eq!((waiter.line().as_str(), waiter.end()), ("granted", Some(0)));
}

#[test]
fn shared_holders_exclude_an_exclusive_one() {
    let place = Place::new();
    let holds = [&["run", "x", "--shared", "--"] as &[_], &UNTIL_TOLD].concat();
    let (mut first, mut second) = (place.start(&holds), place.start(&holds));
    assert_ne!(first.line(), second.line());
    assert!(place.is_busy("x"));
    for sharer in [&mut first, &mut second] {
        sharer.say("\n");
    }
    assert_eq!((first.end(), second.end()), (Some(0), Some(0)));
    assert!(!place.is_busy("x"));
}

#[test]
fn stdin_is_the_commands() {
    let place = Place::new();
    let mut count = place.start(&["run", "x", "--", "wc", "-c"]);
    // More than a pipe or a socket takes at once.
    count.say(&"line\n".repeat(200_000));
    count.close_stdin();
    assert_eq!(count.line(), "1000000");
    assert_eq!(count.end(), Some(0));
}

#[test]
fn a_signal_reaches_the_grandchild() {
    let place = Place::new();
    let script = "trap : USR1; \
                  sh -c 'trap \"echo heard; exit\" USR1; echo ready; while :; do sleep 0.02; done' & \
                  wait; wait; exit 5";
    let mut run = place.start(&["run", "x", "--", "sh", "-c", script]);
    assert_eq!(run.line(), "ready");
    run.signal(Signal::USR1);
    assert_eq!(run.line(), "heard");
    assert_eq!(run.end(), Some(5));
}

#[test]
fn processes_left_running_end_before_the_release() {
    let place = Place::new();
    let script = "setsid sh -c 'trap \"\" TERM; echo $$; : > $0; exec sleep 1000' $0 &
                  until [ -e $0 ]; do sleep 0.01; done; exit 3";
    let ready = place.path().join("ready").display().to_string();
    let mut run =
        place.start(&["run", "x", "--on-lost", "term:200ms", "--", "sh", "-c", script, &ready]);
    let pid = run.line();
    assert_eq!(run.end(), Some(3));
    assert!(!lives(&pid), "{pid} lives on");
    assert!(!place.is_busy("x"));
}

#[test]
fn a_short_job_holds_its_lock_long_enough() {
    let place = Place::new();
    let mut run = place.start(&["run", "x", "--at-least", "1h", "--", "echo", "done"]);
    assert_eq!(run.line(), "done");
    assert!(place.is_busy("x"));
    run.signal(Signal::TERM);
    assert_eq!(run.end(), Some(0));
    assert!(!place.is_busy("x"));
}

#[test]
fn a_job_that_is_asked_to_end_does_not_hold_on() {
    let place = Place::new();
    let script = "echo; exec sleep 1000";
    let mut run = place.start(&["run", "x", "--at-least", "1h", "--", "sh", "-c", script]);
    run.line();
    run.signal(Signal::TERM);
    assert_eq!(run.end(), Some(143));
    assert!(!place.is_busy("x"));
}

/// A waiter that is asked to end leaves nothing in the queue.
#[test]
fn a_waiter_that_ends_leaves_the_queue() {
    let place = Place::new();
    let mut holder = place.start(&["run", "x", "--", "sh", "-c", "echo; exec sleep 1000"]);
    holder.line();
    let waiter = place.start(&["run", "x", "true"]);
    place.await_waiters("x", 1);
    waiter.signal(Signal::TERM);
    assert_eq!(waiter.end(), Some(143));
    assert_eq!(place.show("x")["waiters"].as_array().map(Vec::len), Some(0));
    holder.signal(Signal::TERM);
    assert_eq!(holder.end(), Some(143));
}

/// The processes that would run its command start while it waits.
#[test]
fn a_waiter_that_is_killed_leaves_no_process() {
    let place = Place::new();
    let mut holder = place.start(&["run", "x", "--", "sh", "-c", "echo; exec sleep 1000"]);
    holder.line();
    let waiter = place.start(&["run", "x", "true"]);
    place.await_waiters("x", 1);
    let supervisor = child(&waiter.pid());
    until("the supervisor starts the launcher", || !child(&supervisor).is_empty());
    let launcher = child(&supervisor);
    waiter.signal(Signal::KILL);
    assert_eq!(waiter.end(), Some(137));
    until("both are gone", || !lives(&supervisor) && !lives(&launcher));
}

/// A signal by the name of the program, as from `pkill distlock`, is for the holder alone.
#[test]
fn ps_tells_the_supervisor_from_its_holder() {
    let place = Place::new();
    let mut run = place.start(&["run", "x", "--", "sh", "-c", "echo; read line"]);
    run.line();
    let shown = |pid: &str, file: &str| {
        std::fs::read_to_string(format!("/proc/{pid}/{file}")).expect("it lives")
    };
    let supervisor = child(&run.pid());
    assert_eq!(shown(&run.pid(), "comm"), "distlock\n");
    assert_eq!(shown(&supervisor, "comm"), "supervise\n");
    // As `ps` shows them: what is left of the room are NULs.
    let line = shown(&supervisor, "cmdline").trim_end_matches('\0').replace('\0', " ");
    assert_eq!(line, "distlock supervise sh -c echo; read line");
    run.say("\n");
    assert_eq!(run.end(), Some(0));
}

/// The only child of a process; empty if there is none.
pub fn child(pid: &str) -> String {
    let children = std::fs::read_to_string(format!("/proc/{pid}/task/{pid}/children"));
    children.unwrap_or_default().trim().to_owned()
}

/// Looks again and again at a fact that only the processes show.
pub fn until(what: &str, mut look: impl FnMut() -> bool) {
    let limit = Clock::Boot.now() + Duration::from_secs(60);
    while !look() {
        assert!(Clock::Boot.now() < limit, "it never came to that: {what}");
        std::thread::sleep(Duration::from_millis(5));
    }
}
