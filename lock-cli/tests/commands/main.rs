//! What people type, and what they get: exit codes, output, signals. On the embedded store, with real
//! processes.

#![cfg(all(target_os = "linux", feature = "sqlite"))]

use std::{
    io::{BufRead, BufReader, Write},
    path::Path,
    process::{Child, Command, Output, Stdio},
};

use rustix::process::{Pid, Signal, kill_process};
use tempfile::TempDir;

/// A store of its own, in a bare environment.
struct Place(TempDir);

impl Place {
    fn new() -> Self {
        Self(tempfile::tempdir().expect("a folder"))
    }

    fn path(&self) -> &Path {
        self.0.path()
    }

    fn command(&self, arguments: &[&str]) -> Command {
        let mut command = Command::new(env!("CARGO_BIN_EXE_distlock"));
        command.args(arguments).env_clear().env("PATH", "/usr/bin:/bin");
        command.env("DISTLOCK_STORE", format!("sqlite:{}", self.path().join("db").display()));
        command
    }

    fn run(&self, arguments: &[&str]) -> (Option<i32>, String, String) {
        let output = self.command(arguments).stdin(Stdio::null()).output().expect("it starts");
        said(&output)
    }

    /// Starts one whose command says a first line.
    fn start(&self, arguments: &[&str]) -> (Child, BufReader<std::process::ChildStdout>, String) {
        let mut command = self.command(arguments);
        let mut child = command.stdout(Stdio::piped()).spawn().expect("it starts");
        let mut out = BufReader::new(child.stdout.take().expect("its stdout"));
        let mut line = String::new();
        out.read_line(&mut line).expect("a line");
        (child, out, line)
    }
}

fn said(output: &Output) -> (Option<i32>, String, String) {
    let text = |bytes: &[u8]| String::from_utf8_lossy(bytes).into_owned();
    (output.status.code(), text(&output.stdout), text(&output.stderr))
}

fn signal(child: &Child, signal: Signal) {
    let pid = Pid::from_raw(child.id().cast_signed()).expect("a process id");
    kill_process(pid, signal).expect("it runs");
}

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
fn every_failure_has_its_code() {
    let place = Place::new();
    let (code, _, error) = place.run(&["run", "x", "--ttl", "5s", "--on-lost", "term:5s", "true"]);
    assert!(code == Some(64) && error.contains("--ttl 19s"), "{error}");
    let config = place.path().join("distlock");
    std::fs::create_dir(&config).unwrap();
    std::fs::write(config.join("config.toml"), "store = \"nonsense:\"").unwrap();
    let mut ls = place.command(&["ls"]);
    ls.env_remove("DISTLOCK_STORE").env("XDG_CONFIG_HOME", place.path());
    let (code, _, error) = said(&ls.output().unwrap());
    assert!(code == Some(78) && error.contains("config.toml"), "{error}");
    for (arguments, expected) in [
        (&["run"] as &[&str], 64),
        (&["run", "x"], 64),
        (&["run", "", "true"], 64),
        (&["ls", "--store", "nonsense:"], 64),
        (&["show", "x", "--store", "sqlite:/proc/none/db"], 77),
        (&["revoke", "x", "a"], 64),
        (&["revoke", "x", "a", "--yes"], 1),
        (&["leader", "x"], 1),
    ] {
        let (code, _, error) = place.run(arguments);
        assert!(code == Some(expected) && !error.is_empty(), "{arguments:?}: {code:?} {error}");
    }
}

#[test]
fn one_at_a_time() {
    let place = Place::new();
    let script = "echo $DISTLOCK_TOKEN; read line; exit 0";
    let mut first = place.command(&["run", "x", "--", "sh", "-c", script]);
    let mut first = first.stdin(Stdio::piped()).stdout(Stdio::piped()).spawn().unwrap();
    let mut line = String::new();
    BufReader::new(first.stdout.take().unwrap()).read_line(&mut line).unwrap();
    assert_eq!(place.run(&["run", "x", "--no-wait", "true"]).0, Some(75));
    assert_eq!(place.run(&["run", "x", "--wait", "200ms", "true"]).0, Some(124));
    let (_, shown, _) = place.run(&["show", "x", "--json"]);
    let shown: serde_json::Value = serde_json::from_str(&shown).unwrap();
    assert_eq!(shown["holders"][0]["token"].to_string(), line.trim());
    let mut second = place.command(&["run", "x", "--", "sh", "-c", "echo $DISTLOCK_TOKEN"]);
    let second = second.stdout(Stdio::piped()).spawn().unwrap();
    first.stdin.take().unwrap().write_all(b"\n").unwrap();
    assert_eq!(first.wait().unwrap().code(), Some(0));
    let (code, token, _) = said(&second.wait_with_output().unwrap());
    assert_eq!(code, Some(0));
    assert!(token.trim().parse::<u64>().unwrap() > line.trim().parse().unwrap(), "{token}");
}

#[test]
fn a_signal_reaches_the_grandchild() {
    let place = Place::new();
    let script = "sh -c 'trap \"echo heard; exit\" USR1; echo ready; while :; do sleep 0.02; done' & \
                  trap : USR1; wait; wait; exit 5";
    let (mut run, mut out, line) = place.start(&["run", "x", "--", "sh", "-c", script]);
    assert_eq!(line, "ready\n");
    signal(&run, Signal::USR1);
    let mut line = String::new();
    out.read_line(&mut line).unwrap();
    assert_eq!((line.as_str(), run.wait().unwrap().code()), ("heard\n", Some(5)));
}

#[test]
fn what_is_left_running_ends_before_the_lock_is_released() {
    let place = Place::new();
    let script = "setsid sh -c 'trap \"\" TERM; echo $$; : > $0; exec sleep 1000' $0 &
                  until [ -e $0 ]; do sleep 0.01; done; exit 3";
    let ready = place.path().join("ready").display().to_string();
    let arguments = ["run", "x", "--on-lost", "term:200ms", "--", "sh", "-c", script, &ready];
    let (mut run, _out, pid) = place.start(&arguments);
    assert_eq!(run.wait().unwrap().code(), Some(3));
    assert!(!Path::new("/proc").join(pid.trim()).exists(), "{pid} lives on");
    assert_eq!(place.run(&["run", "x", "--no-wait", "true"]).0, Some(0));
}

#[test]
fn a_revoked_command_is_killed_at_once() {
    let place = Place::new();
    let (mut run, _out, pid) =
        place.start(&["run", "x", "--", "sh", "-c", "trap '' TERM; echo $$; exec sleep 1000"]);
    let (_, shown, _) = place.run(&["show", "x", "--json"]);
    let shown: serde_json::Value = serde_json::from_str(&shown).unwrap();
    let id = shown["holders"][0]["id"].as_str().unwrap();
    assert_eq!(place.run(&["revoke", "x", &id[..8], "--yes"]).0, Some(0));
    assert_eq!(run.wait().unwrap().code(), Some(79));
    assert!(!Path::new("/proc").join(pid.trim()).exists(), "{pid} lives on");
}

#[test]
fn a_command_ends_at_its_longest_hold() {
    let place = Place::new();
    let arguments = ["run", "x", "--max-hold", "300ms", "--on-lost", "kill", "sleep", "1000"];
    assert_eq!(place.run(&arguments).0, Some(79));
}

#[test]
fn a_short_job_holds_its_lock_long_enough() {
    let place = Place::new();
    let (run, _out, _) = place.start(&["run", "x", "--at-least", "1h", "--", "echo", "done"]);
    let busy = || place.run(&["run", "x", "--no-wait", "true"]).0;
    assert_eq!(busy(), Some(75));
    signal(&run, Signal::TERM);
    assert_eq!(said(&run.wait_with_output().unwrap()).0, Some(0));
    assert_eq!(busy(), Some(0));
}

#[test]
fn whoever_leads_is_seen_and_resigns() {
    let place = Place::new();
    let (mut leader, _out, line) = place.start(&["elect", "e", "http://me"]);
    assert!(line.starts_with("leading e with token"), "{line}");
    assert_eq!(place.run(&["leader", "e"]).1, "http://me\n");
    assert_eq!(place.run(&["elect", "e", "other", "--no-wait"]).0, Some(75));
    signal(&leader, Signal::TERM);
    assert_eq!(leader.wait().unwrap().code(), Some(0));
    assert_eq!(place.run(&["elect", "e", "other", "--", "sh", "-c", "exit 4"]).0, Some(4));
}

#[test]
fn a_closed_stdout_is_no_panic() {
    let place = Place::new();
    let (reader, writer) = std::io::pipe().unwrap();
    drop(reader);
    let mut stores = place.command(&["stores"]);
    let (code, _, error) = said(&stores.stdout(writer).stderr(Stdio::piped()).output().unwrap());
    assert_eq!((code, error.as_str()), (Some(0), ""));
}

#[test]
fn no_message_shows_a_password() {
    let place = Place::new();
    let mut ls = place.command(&["ls"]);
    ls.env("DISTLOCK_STORE", "sqlite:x.db?password=QXZQXZ");
    let (code, out, error) = said(&ls.output().unwrap());
    assert_eq!(code, Some(78));
    assert!(!format!("{out}{error}").contains("QXZ"), "{error}");
}

/// A waiter that is asked to end leaves nothing in the queue.
#[test]
fn a_waiter_that_ends_leaves_the_queue() {
    let place = Place::new();
    let (mut holder, _out, _) =
        place.start(&["run", "x", "--", "sh", "-c", "echo; exec sleep 1000"]);
    let mut waiter = place.command(&["run", "x", "true"]).spawn().unwrap();
    let waiters = || {
        let shown: serde_json::Value =
            serde_json::from_str(&place.run(&["show", "x", "--json"]).1).unwrap();
        shown["waiters"].as_array().unwrap().len()
    };
    let limit = 1000;
    assert!((0..limit).any(|_| waiters() == 1), "it never stood in line");
    signal(&waiter, Signal::TERM);
    assert_eq!(waiter.wait().unwrap().code(), Some(143));
    assert_eq!(waiters(), 0);
    signal(&holder, Signal::TERM);
    assert_eq!(holder.wait().unwrap().code(), Some(143));
}
