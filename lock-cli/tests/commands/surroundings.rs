//! What surrounds the program: service managers, containers, sudo, and the shell that it replaces.

use std::{
    os::unix::{fs::chown, process::ExitStatusExt},
    process::{Command, Stdio},
};

use rustix::process::{Pid, Signal, kill_process};

use super::{
    loss::revoke,
    run::{child, until},
};
use crate::place::{Place, Process, lives, said};

const PROGRAM: &str = env!("CARGO_BIN_EXE_distlock");
/// A user without rights.
const NOBODY: u32 = 65_534;

/// Starts the program where no signal is ignored: a shell's background ignores INT.
fn started(place: &Place, arguments: &[&str]) -> Process {
    let program = ["--default-signal", PROGRAM];
    Process::of(place.other("env", &[&program as &[&str], arguments].concat()))
}

/// `systemctl stop` counts it as a clean end.
#[test]
fn a_signal_that_ends_the_command_or_the_wait_ends_the_program() {
    let place = Place::new();
    let sleep = ["--", "sh", "-c", "echo; exec sleep 1000"];
    for signal in [Signal::TERM, Signal::HUP, Signal::INT] {
        let mut run = started(&place, &[&["run", "x"] as &[&str], &sleep].concat());
        run.line();
        let wait = started(&place, &["hold", "x"]);
        place.await_waiters("x", 1);
        for process in [wait, run] {
            process.signal(signal);
            assert_eq!(process.status().signal(), Some(signal.as_raw()));
        }
    }
    // A command that ends in its own way gives its own code.
    let own = ["--", "sh", "-c", "trap 'exit 7' TERM; echo; while :; do sleep 0.02; done"];
    let mut run = place.start(&[&["run", "x"] as &[&str], &own].concat());
    run.line();
    run.signal(Signal::TERM);
    assert_eq!(run.status().code(), Some(7));
}

/// The first process of a container, and its number outside.
fn container(place: &Place, arguments: &[&str]) -> (Process, Pid) {
    let options = ["--pid", "--fork", "--mount-proc", "--kill-child", PROGRAM];
    let mut unshare =
        Process::of(place.other("unshare", &[&options as &[&str], arguments].concat()));
    unshare.line();
    let first = child(&unshare.pid()).parse().ok().and_then(Pid::from_raw);
    (unshare, first.expect("the first process"))
}

#[test]
fn the_first_process_of_a_container_has_an_exit_code_and_reaps() {
    let place = Place::new();
    let command = ["run", "x", "--", "sh", "-c", "echo; exec sleep 1000"];
    for (arguments, children, code) in [(&command as &[&str], 1, 143), (&["hold", "x"], 0, 0)] {
        let (unshare, first) = container(&place, arguments);
        let pid = first.as_raw_pid().to_string();
        // What a shell in the container has left belongs to its first process.
        let mut enter = Command::new("nsenter");
        enter.args(["--target", &pid, "--pid", "--mount", "--", "sh", "-c", "sleep 0.1 &"]);
        assert!(enter.stdout(Stdio::null()).status().expect("nsenter").success());
        until("the stray is reaped", || child(&pid).split_whitespace().count() == children);
        kill_process(first, Signal::TERM).expect("it runs");
        assert_eq!(unshare.status().code(), Some(code), "{arguments:?}");
    }
}

/// The shell has started a process of its own before it became this program.
#[test]
fn a_loss_ends_nothing_that_ran_before() {
    let place = Place::new();
    let script =
        "sleep 1000 & echo $!; \"$@\" & echo $!; exec \"$0\" run x -- sh -c 'echo $$; read l'";
    let restless = ["sh", "-c", "while :; do sleep 0.02; done"];
    let shell = [&["-c", script, PROGRAM] as &[&str], &restless].concat();
    let mut run = Process::of(place.other("sh", &shell));
    let before = [run.line(), run.line()];
    let command = run.line();
    revoke(&place);
    assert_eq!(run.end(), Some(79));
    assert!(!lives(&command), "{command} lives on");
    for pid in before {
        assert!(lives(&pid), "{pid} was no part of the command");
        let pid = pid.parse().ok().and_then(Pid::from_raw).expect("a process");
        kill_process(pid, Signal::KILL).expect("it lives");
    }
}

/// As on an old kernel, or behind a container's filter.
#[test]
fn a_command_is_asked_to_end_without_descriptors_of_processes() {
    let place = Place::new();
    let script = "trap 'echo asked; exit 0' TERM; echo ready; while :; do sleep 0.02; done";
    // A busy machine has 8 s from the question to the end.
    let limit = ["run", "x", "--max-hold", "24s", "--on-lost", "term:8s", "--ttl", "60s", "--"];
    let tracer = ["-f", "-qq", "-o", "/dev/null", "-e", "trace=pidfd_open", "-e"];
    let tracer = [&tracer as &[&str], &["inject=pidfd_open:error=ENOSYS", PROGRAM]].concat();
    let command = [&tracer as &[&str], &limit, &["sh", "-c", script]].concat();
    let mut run = Process::of(place.other("strace", &command));
    assert_eq!((run.line().as_str(), run.line().as_str()), ("ready", "asked"));
    assert_eq!(run.end(), Some(79));
}

/// What valgrind slows down needs the machine: opening a file has a limit.
mod alone {
    use super::*;

    /// Tools for heaps and profiles run a program in the same way.
    #[test]
    fn the_program_runs_under_valgrind() {
        let place = Place::new();
        let tool = ["--tool=none", "-q", PROGRAM, "run", "x", "--ttl", "1h", "--"];
        let command = [&tool as &[&str], &["sh", "-c", "echo held; read line"]].concat();
        let mut run = Process::of(place.other("valgrind", &command));
        assert_eq!(run.line(), "held");
        run.say("\n");
        assert_eq!(run.end(), Some(0));
    }
}

#[test]
fn a_store_that_nobody_chose_is_named() {
    let place = Place::new();
    let run = |arguments: &[&str]| {
        let mut command = place.command(arguments);
        said(&command.env_remove("DISTLOCK_STORE").env("HOME", place.path()).output().unwrap())
    };
    let file = place.path().join(".local/state/distlock/locks.db").display().to_string();
    let (code, out, error) = run(&["run", "x", "--", "echo", "done"]);
    assert_eq!((code, out.as_str()), (Some(0), "done\n"));
    assert!(error.contains("no store is named") && error.contains(&file), "{error}");
    for arguments in [&["run", "x", "--quiet", "true"] as &[&str], &["ls"]] {
        assert!(!run(arguments).2.contains("no store"), "{arguments:?}");
    }
    // A command within has the choice of the program around it.
    let nested = ["run", "x", "--quiet", "--", PROGRAM, "run", "y", "true"];
    assert_eq!(run(&nested), (Some(0), String::new(), String::new()));
}

/// `sudo` may leave HOME as it is.
#[test]
fn root_makes_no_file_in_the_home_of_another_user() {
    let place = Place::new();
    chown(place.path(), Some(NOBODY), None).expect("this test needs root");
    for arguments in [&["run", "x", "true"] as &[&str], &["ls"], &["ls", "--store", "sqlite:"]] {
        let mut command = place.command(arguments);
        command.env_remove("DISTLOCK_STORE").env("HOME", place.path());
        let (code, _, error) = said(&command.output().unwrap());
        let told = error.contains("is of user 65534") && error.contains("name a store");
        assert!(code == Some(78) && told, "{arguments:?}: {code:?} {error}");
    }
    assert_eq!(std::fs::read_dir(place.path()).unwrap().count(), 0);
}

#[test]
fn a_busy_lock_has_the_code_and_the_silence_that_are_asked_for() {
    let place = Place::new();
    let _holder = place.hold("x");
    let mut leader = place.start(&["elect", "e", "v"]);
    leader.line();
    for busy in [&["run", "x"] as &[&str], &["hold", "x"], &["elect", "e", "w"]] {
        for limit in [&["--no-wait"] as &[&str], &["--wait", "100ms"]] {
            let command: &[&str] = if busy[0] == "run" { &["true"] } else { &[] };
            let quiet = [busy, limit, &["--quiet", "--busy-code", "3"], command].concat();
            assert_eq!(place.run(&quiet), (Some(3), String::new(), String::new()), "{quiet:?}");
            let loud = [busy, limit, &["--busy-code", "0"], command].concat();
            let (code, _, error) = place.run(&loud);
            assert!(code == Some(0) && error.contains("held by"), "{loud:?}: {code:?} {error}");
        }
    }
    // No other failure is silent.
    let nowhere = ["run", "x", "--quiet", "--busy-code", "3", "--store", "nonsense:", "true"];
    let (code, _, error) = place.run(&nowhere);
    assert!(code == Some(64) && !error.is_empty(), "{code:?} {error}");
}
