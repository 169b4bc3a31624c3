//! The end of a command that loses its lock.

#[cfg(feature = "redis")]
use std::io::{BufRead, BufReader};
use std::time::Duration;

use lock_core::Clock;
use rustix::process::{Pid, Signal, kill_process};

use super::run::{child, until};
use crate::place::{Place, Process, lives};

/// Prints its process number, and does not end when it is asked to.
const DEAF: [&str; 3] = ["sh", "-c", "trap '' TERM; echo $$; read line; exit 6"];

fn holder(place: &Place, options: &[&'static str]) -> Process {
    place.start(&[&["run", "x"], options, &["--"], &DEAF].concat())
}

/// Takes `x` away from its holder.
pub fn revoke(place: &Place) {
    let shown = place.show("x");
    let id = shown["holders"][0]["attempt"].as_str().expect("an attempt");
    assert_eq!(place.run(&["revoke", "x", &id[..8], "--yes"]).0, Some(0));
}

/// Its stderr, line by line.
#[cfg(feature = "redis")]
#[test]
fn a_store_that_is_silent_for_a_while_is_told() {
    let runtime = tokio::runtime::Runtime::new().expect("a runtime");
    let server = runtime.block_on(lock_lab::Redis::builder().start()).expect("a server");
    let place = Place::on(server.url());
    for command in [
        &["run", "x", "--ttl", "20s", "--", "sh", "-c", "echo; read l"] as &[&str],
        &["hold", "x", "--ttl", "20s"],
    ] {
        let mut run = place.command(command);
        let (told, stderr) = std::io::pipe().expect("a pipe");
        run.stderr(stderr);
        let mut run = Process::of(run);
        run.line();
        let mut told = BufReader::new(told).lines().map(|line| line.expect("text"));
        server.stop();
        let line = told.next().expect("a word");
        assert!(line.contains("does not confirm renewals: x is lost in"), "{line}");
        server.resume();
        assert_eq!(told.next().as_deref(), Some("distlock: the store has renewed x"));
        run.signal(Signal::TERM);
        run.end();
    }
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

/// Each of its processes is gone before a look at it can have an effect.
#[test]
fn a_process_that_forks_again_and_again_is_killed() {
    let place = Place::new();
    let mark = place.path().join("mark").display().to_string();
    let script = "trap '' TERM; hop() { hop & exit; }; hop & exec sleep 1000";
    for start in [&["sh"] as &[&str], &["setsid", "--wait", "sh"]] {
        let limit = ["run", "x", "--max-hold", "300ms", "--on-lost", "kill", "--"];
        let command = [&limit, start, &["-c", script, &mark]].concat();
        assert_eq!(place.run(&command).0, Some(79));
        let left = (0..20).find_map(|_| started_with(&mark));
        assert_eq!(left, None, "{start:?}");
    }
}

/// A process that has this among its arguments.
fn started_with(argument: &str) -> Option<String> {
    let mut processes = std::fs::read_dir("/proc").expect("processes").flatten();
    processes.find_map(|process| {
        let line = std::fs::read_to_string(process.path().join("cmdline")).unwrap_or_default();
        line.contains(argument).then_some(line)
    })
}

/// A holder, its command, and its supervisor.
fn supervised(place: &Place) -> (Process, String, Pid) {
    let mut run = holder(place, &[]);
    let pid = run.line();
    let supervisor = process(&child(&run.pid()));
    (run, pid, supervisor)
}

fn process(pid: &str) -> Pid {
    pid.parse().ok().and_then(Pid::from_raw).expect("a process id")
}

/// It reads nothing, and a socket takes less than the test sends.
#[test]
fn a_supervisor_that_is_stopped_keeps_no_command_alive() {
    let place = Place::new();
    let (run, pid, supervisor) = supervised(&place);
    kill_process(supervisor, Signal::STOP).expect("it runs");
    for _ in 0..1000 {
        run.signal(Signal::USR1);
        while mask(&run.pid(), "ShdPnd:") != 0 {
            std::thread::yield_now();
        }
    }
    revoke(&place);
    assert_eq!(run.end(), Some(79));
    assert!(!lives(&pid), "{pid} lives on");
}

/// As one that is traced or frozen, which SIGCONT does not continue.
#[test]
fn a_supervisor_that_is_stopped_again_and_again_does_not_keep_its_holder() {
    let place = Place::new();
    let (run, pid, supervisor) = supervised(&place);
    // Until it is reaped.
    std::thread::spawn(move || while kill_process(supervisor, Signal::STOP).is_ok() {});
    revoke(&place);
    assert_eq!(run.end(), Some(79));
    assert!(!lives(&pid), "{pid} lives on");
}

/// A mask of signals of a process, as those that it has not received yet (`ShdPnd:`).
fn mask(pid: &str, name: &str) -> u64 {
    let status = std::fs::read_to_string(format!("/proc/{pid}/status")).expect("its status");
    let mask = status.lines().find_map(|line| line.strip_prefix(name)).expect("a mask");
    u64::from_str_radix(mask.trim(), 16).expect("a number")
}

/// The supervisor was stopped before the grant, and goes on when the deadline of the grant has
/// passed. The holder renews the lock all that time.
#[test]
fn no_command_begins_if_its_supervisor_hears_of_the_grant_too_late() {
    const TTL: Duration = Duration::from_secs(2);
    let place = Place::new();
    let mut first = place.hold("x");
    let began = place.path().join("began").display().to_string();
    let options = ["--ttl", "2s", "--on-lost", "kill"];
    let run = place.start(&[&["run", "x"] as &[&str], &options, &["--", "touch", &began]].concat());
    place.await_waiters("x", 1);
    let supervisor = child(&run.pid());
    // It has told the holder that the launcher is there.
    await_idle_after(&supervisor, Signal::CHILD);
    kill_process(process(&supervisor), Signal::STOP).expect("it runs");

    first.say("\n");
    assert_eq!(first.end(), Some(0));
    // The holder has sent a deadline and the order to begin, and later deadlines only.
    await_idle_after(&run.pid(), Signal::WINCH);
    let late = Clock::Boot.now() + TTL;
    until("the first deadline passes", || Clock::Boot.now() > late);
    kill_process(process(&supervisor), Signal::CONT).expect("it is stopped");
    assert_eq!(run.end(), Some(79));
    assert!(!std::path::Path::new(&began).exists(), "the command has begun");
    assert!(!place.is_busy("x"));
}

/// Looks until a process listens for this signal, and has done all that it can do after that.
fn await_idle_after(pid: &str, signal: Signal) {
    until("it listens", || mask(pid, "SigCgt:") & (1 << (signal.as_raw() - 1)) != 0);
    let number = pid.parse().expect("a process id");
    until("it has nothing to do", || lock_lab::state_of(number) == Some('S'));
}

#[test]
fn a_command_ends_at_its_longest_hold() {
    let place = Place::new();
    for policy in ["kill", "term:100ms"] {
        let mut run = holder(&place, &["--max-hold", "2s", "--on-lost", policy]);
        let pid = run.line();
        assert_eq!(run.end(), Some(79), "{policy}");
        assert!(!lives(&pid), "{policy}: {pid} lives on");
    }
}

#[test]
fn a_command_outlives_its_lock_with_on_lost_ignore() {
    let place = Place::new();
    let mut run = holder(&place, &["--on-lost", "ignore"]);
    let pid = run.line();
    revoke(&place);
    assert!(!place.is_busy("x"));
    assert!(lives(&pid), "{pid} was ended");
    run.say("\n");
    assert_eq!(run.end(), Some(6));
}
