//! What other users of the machine see of a store's password: nothing.

use std::{fs, path::Path};

use lock_lab::Redis;

use super::run::{child, until};
use crate::place::{Place, Process, said};

const PROGRAM: &str = env!("CARGO_BIN_EXE_distlock");
const PASSWORD: &str = "QXZQXZ";

fn secured() -> (Redis, Place) {
    secured_by(PASSWORD)
}

/// A server that demands the password, and a place on it.
fn secured_by(password: &str) -> (Redis, Place) {
    let runtime = tokio::runtime::Runtime::new().expect("a runtime");
    let server = runtime.block_on(Redis::builder().password(password).start()).expect("a server");
    let place = Place::on(server.url());
    (server, place)
}

/// Starts the program with its store on the command line alone.
fn start(place: &Place, option: &[&str], arguments: &[&str]) -> Process {
    place.start_without_store(&[option, arguments].concat())
}

/// The command lines of all processes of this program.
fn command_lines() -> Vec<String> {
    let of = |process: &Path| {
        let program = fs::read_link(process.join("exe")).ok()?;
        let line = fs::read(process.join("cmdline")).ok()?;
        (program == Path::new(PROGRAM)).then(|| String::from_utf8_lossy(&line).replace('\0', " "))
    };
    let processes = fs::read_dir("/proc").expect("processes").flatten();
    processes.filter_map(|process| of(&process.path())).collect()
}

/// The environment of a process, as text.
fn environment(pid: &str) -> String {
    let environment = fs::read(format!("/proc/{pid}/environ")).expect("its environment");
    String::from_utf8_lossy(&environment).replace('\0', "\n")
}

/// A secret of Kubernetes, say, ends in a line end.
#[test]
fn a_password_in_a_variable_ends_before_its_line_end() {
    let (server, place) = secured();
    let url = server.url().replace(&format!(":{PASSWORD}@"), "");
    for password in [format!("{PASSWORD}\n"), format!("{PASSWORD}\r\n")] {
        let mut run = place.command(&["run", "x", "true"]);
        run.env("DISTLOCK_STORE", format!("{url}?password_env=PASSWORD")).env("PASSWORD", password);
        let (code, _, error) = said(&run.output().expect("it starts"));
        assert_eq!(code, Some(0), "{error}");
    }
}

#[test]
fn no_command_line_shows_the_password_while_a_command_runs_or_waits() {
    // Of this test alone: others' processes have just been started, and hide theirs in a moment.
    let password = "JWVJWV";
    let (_server, place) = secured_by(password);
    let joined = format!("--store={}", place.store());
    // A command that is given one as well, as another distlock is.
    let script = "echo $$; exec sleep 1000";
    let command = ["--", "sh", "-c", script, "sh", "--store", place.store()];
    for option in [&["--store", place.store()] as &[&str], &[&joined]] {
        let mut holder = start(&place, option, &[&["run", "x"] as &[&str], &command].concat());
        let held = holder.line();
        // After the command's name, too.
        let mut waiter = start(&place, &["run", "x"], &[option, &command].concat());
        place.await_waiters("x", 1);
        let supervisor = child(&waiter.pid());
        until("the supervisor starts the launcher", || !child(&supervisor).is_empty());

        let lines = command_lines();
        let shown = lines.iter().filter(|line| line.contains("redis://:***@"));
        // The holder, the waiter, and the supervisor of each.
        assert!(shown.count() >= 4, "one is not among {lines:?}");
        assert!(!lines.iter().any(|line| line.contains(password)), "{lines:?}");
        assert_eq!(child(&child(&holder.pid())), held);
        let given = environment(&held);
        assert!(!given.contains(password) && given.contains("DISTLOCK_STORE=redis://"), "{given}");
        assert!(!given.contains("_DISTLOCK"), "{given}");

        holder.signal(rustix::process::Signal::TERM);
        assert_eq!(holder.end(), Some(143));
        assert!(!waiter.line().is_empty(), "it does not go on");
        waiter.signal(rustix::process::Signal::TERM);
        assert_eq!(waiter.end(), Some(143));
    }
}

#[test]
fn a_command_gets_its_own_arguments_as_they_are() {
    let (_server, place) = secured();
    let own = ["--store", "redis://u:p4ss@h", "--above=etcd://u:p4ss@h"];
    let run = ["--store", place.store(), "run", "x", "printf", "%s\n"];
    let (code, text, error) =
        said(&place.command(&[&run as &[&str], &own].concat()).output().expect("it starts"));
    assert_eq!((code, text.lines().collect::<Vec<_>>()), (Some(0), own.to_vec()), "{error}");
}

/// Two stores that differ in the password alone.
#[test]
fn each_store_keeps_its_own_password() {
    let (_server, place) = secured();
    let wrong = place.store().replace(PASSWORD, "other");
    let check =
        ["check", "--json", "--property", "names", "--store", place.store(), "--store", &wrong];
    let (_, text, error) = place.run(&check);
    let stores: serde_json::Value = serde_json::from_str(&text).expect(&error);
    assert_eq!(
        (&stores[0]["error"], stores[1]["error"].is_string()),
        (&serde_json::Value::Null, true),
        "{stores}"
    );
    let both = place.run(&["--store", &wrong, "ls", "--store", place.store()]);
    assert!(both.0 == Some(64) && both.2.contains("before and after"), "{both:?}");
}

/// The variable says which arguments were hidden. Another process inherits it.
#[test]
fn what_was_hidden_for_another_process_does_not_count() {
    let (_server, place) = secured();
    let shown = place.store().replace(PASSWORD, "***");
    let hidden = format!(r#"{{"process":1,"arguments":[[2,"{}"]]}}"#, place.store());
    let mut ls = place.command(&["--store", &shown, "ls"]);
    let (code, _, error) =
        said(&ls.env("_DISTLOCK_ARGUMENTS", hidden).output().expect("it starts"));
    assert!(code == Some(77), "{code:?}: {error}");
}
