//! Output that nobody reads, and output that others have written.

use std::{fs::File, process::Stdio};

use crate::place::{Place, said};

/// A pipe that nobody reads, and a full disk.
pub fn broken() -> [Stdio; 2] {
    let (reader, writer) = std::io::pipe().expect("a pipe");
    drop(reader);
    [writer.into(), File::create("/dev/full").expect("Linux has it").into()]
}

#[test]
fn a_leader_that_cannot_say_so_resigns() {
    let place = Place::new();
    for stdout in broken() {
        let mut elect = place.command(&["elect", "e", "v", "--ttl", "1h"]);
        let (code, _, error) = said(&elect.stdout(stdout).stderr(Stdio::piped()).output().unwrap());
        assert!(code == Some(71) && error.contains("saying that it leads"), "{code:?}: {error}");
        assert!(!place.is_busy("e"), "it left the leadership behind");
    }
}

/// A row more, a title for the window, a turn of the direction, the end of C1.
const HOSTILE: &str = "x\nprod/db  nobody\x1b]0;owned\x07\u{202e}\u{9b}2J";

#[test]
fn what_others_wrote_stays_text() {
    let place = Place::new();
    let mut holder = place.start(&["run", HOSTILE, "--", "sh", "-c", "echo; read line"]);
    holder.line();
    let mut watch = place.start(&["watch"]);
    assert!(watch.line().ends_with(&format!(" 1 name in {}", place.store())));
    let shown = [
        place.run(&["ls"]).1,
        place.run(&["show", HOSTILE]).1,
        place.run(&["run", HOSTILE, "--no-wait", "true"]).2,
        place.run(&["run", HOSTILE, "--wait", "1ms", "true"]).2,
        place.run(&["revoke", HOSTILE, "a\x1b", "--yes"]).2,
        watch.line(),
    ];
    for text in shown {
        assert!(text.contains("x\\nprod/db  nobody\\u{1b}]0;owned\\u{7}\\u{202e}"), "{text:?}");
        assert!(
            !text.contains(|c: char| c.is_control() && c != '\n' || c == '\u{202e}'),
            "{text:?}"
        );
        assert!(text.lines().all(|line| !line.starts_with("prod/db")), "{text:?}");
    }
    assert_eq!(place.show(HOSTILE)["name"], HOSTILE, "programs get it as it is");
}

#[test]
fn what_is_listed_says_where() {
    let place = Place::new();
    let store = place.store();
    let nobody = format!("nobody holds or waits for a lock in {store}\n");
    assert_eq!(place.run(&["ls"]), (Some(0), nobody, String::new()));
    let (_, list, _) = place.run(&["ls", "jobs/"]);
    let expected =
        format!("nobody holds or waits for a lock whose name starts with jobs/ in {store}\n");
    assert_eq!(list, expected);
    assert_eq!(place.run(&["show", "x"]).1, format!("in {store}: x is free\n"));
    assert_eq!(place.run(&["ls", "--json"]).1, "[]\n", "programs get objects only");
    let mut holder = place.start(&["run", "x", "--", "sh", "-c", "echo; read line"]);
    holder.line();
    for command in [&["ls"] as &[&str], &["show", "x"]] {
        let (_, list, _) = place.run(command);
        assert_eq!(list.lines().next(), Some(format!("in {store}:").as_str()), "{list}");
        assert!(list.contains("runs sh"), "{list}");
    }
}

#[test]
fn who_does_not_wait_is_told_who_is_in_the_way() {
    let place = Place::new();
    let mut holder = place.start(&["run", "x", "--", "sh", "-c", "echo; read line"]);
    holder.line();
    for command in [&["run", "x", "--no-wait", "true"] as &[&str], &["hold", "x", "--no-wait"]] {
        let (code, _, error) = place.run(command);
        let told = error.contains("lock x is busy: held by distlock pid ");
        assert!(code == Some(75) && told && error.contains(", runs sh for "), "{error}");
    }
    let mut leader = place.start(&["elect", "e", "v"]);
    leader.line();
    let (code, _, error) = place.run(&["elect", "e", "w", "--no-wait"]);
    let told = error.contains("somebody else leads e: held by distlock pid ");
    assert!(code == Some(75) && told, "{error}");
}

#[test]
fn programs_get_the_leaders_value_as_it_is() {
    let place = Place::new();
    let mut leader = place.start(&["elect", "e", HOSTILE]);
    leader.line();
    assert_eq!(place.run(&["leader", "e"]).1, format!("{HOSTILE}\n"));
}

#[test]
fn help_that_cannot_be_written_is_an_error() {
    let place = Place::new();
    for (stdout, expected) in broken().into_iter().zip([0, 71]) {
        let mut help = place.command(&["--help"]);
        let (code, _, error) = said(&help.stdout(stdout).stderr(Stdio::piped()).output().unwrap());
        assert_eq!(code, Some(expected), "{error}");
    }
}
