//! Output without a reader, and output of foreign text.

use std::{fs::File, process::Stdio, time::Duration};

use super::pty::Pty;
use crate::place::{Place, said};

/// A pipe without a reader, and a full disk.
pub fn broken() -> [Stdio; 2] {
    let (reader, writer) = std::io::pipe().expect("a pipe");
    drop(reader);
    [writer.into(), File::create("/dev/full").expect("Linux has it").into()]
}

#[test]
fn a_leader_that_cannot_print_resigns() {
    let place = Place::new();
    for stdout in broken() {
        let mut elect = place.command(&["elect", "e", "v", "--ttl", "1h"]);
        let (code, _, error) = said(&elect.stdout(stdout).stderr(Stdio::piped()).output().unwrap());
        assert!(code == Some(71) && error.contains("saying that it leads"), "{code:?}: {error}");
        assert!(!place.is_busy("e"), "it left the leadership behind");
    }
}

/// One more row, a title for the window, a turn of the direction, and a C1 control.
const HOSTILE: &str = "x\nprod/db  nobody\x1b]0;owned\x07\u{202e}\u{9b}2J";

#[test]
fn foreign_text_is_escaped() {
    let place = Place::new();
    let _holder = place.hold(HOSTILE);
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
fn lists_name_their_store() {
    let place = Place::new();
    let store = place.store();
    let heading = |text: &str| format!("distlock: {text}\n");
    let unused = heading(&format!("no client holds or waits for a lock in {store}"));
    assert_eq!(place.run(&["ls"]), (Some(0), String::new(), unused), "no row for programs");
    let (_, list, unused) = place.run(&["ls", "jobs/"]);
    let expected =
        format!("no client holds or waits for a lock whose name starts with jobs/ in {store}");
    assert_eq!((list, unused), (String::new(), heading(&expected)));
    assert_eq!(place.run(&["show", "x"]).1, format!("in {store}: x is free\n"));
    assert_eq!(place.run(&["ls", "--json"]).1, "[]\n", "programs get objects only");
    let _holder = place.hold("x");
    for command in [&["ls"] as &[&str], &["show", "x"]] {
        let (_, list, above) = place.run(command);
        assert_eq!(above, heading(&format!("in {store}:")));
        assert!(list.contains("runs sh") && !list.contains("in sqlite:"), "{list}");
    }
}

#[test]
fn only_a_terminal_gets_colours() {
    let place = Place::new();
    let log = ["run", "x", "--log", "debug", "true"];
    let (code, _, lines) = place.run(&log);
    assert!(code == Some(0) && lines.contains("granted") && !lines.contains('\u{1b}'), "{lines}");
    for (no_color, coloured) in [("", true), ("1", false)] {
        let mut screen = Pty::open(200, 24);
        let mut run = place.command(&log);
        run.stderr(screen.other_side()).env("NO_COLOR", no_color);
        assert_eq!(run.status().unwrap().code(), Some(0));
        drop(run);
        let lines = screen.until("no such text").unwrap_err();
        assert!(lines.contains("granted"), "{lines:?}");
        assert_eq!(lines.contains("\u{1b}["), coloured, "{lines:?}");
    }
}

#[test]
fn a_hold_is_shown_without_the_wait_before_it() {
    let place = Place::new();
    let mut first = place.hold("x");
    let mut second = place.start(&["run", "x", "--", "sh", "-c", "echo; read line"]);
    place.await_waiters("x", 1);
    assert!(place.show("x")["waiters"][0]["granted_at"].is_null());
    // Makes the wait differ from the hold.
    std::thread::sleep(Duration::from_secs(3));
    first.say("\n");
    assert_eq!(first.end(), Some(0));
    second.line();
    let times = || {
        let holder = &place.show("x")["holders"][0];
        let time =
            |name: &str| holder[name].as_str().and_then(|t| humantime::parse_rfc3339(t).ok());
        time("queued_at").zip(time("granted_at"))
    };
    let (queued_at, granted_at) = (0..1000).find_map(|_| times()).expect("the time of the grant");
    assert!(granted_at >= queued_at + Duration::from_secs(3), "{queued_at:?}, {granted_at:?}");
    for (command, held) in [
        (&["ls"] as &[&str], "x     distlock"),
        (&["run", "x", "--no-wait", "true"], "held by distlock"),
        (&["run", "x", "--wait", "1s", "true"], "held by distlock"),
    ] {
        let (_, text, error) = place.run(command);
        let said = format!("{text}{error}");
        assert!(said.contains(held) && !said.contains("queued"), "{command:?}: {said}");
    }
    let shown = place.run(&["show", "x"]).1;
    assert!(shown.contains("    granted   ") && shown.contains("    queued    "), "{shown}");
}

/// The names of an object's fields, without the unit of a duration.
fn facts(object: &serde_json::Value) -> Vec<String> {
    let names = object.as_object().expect("an object").keys();
    let mut names: Vec<_> = names.map(|name| name.trim_end_matches("_ms").to_owned()).collect();
    names.sort();
    names
}

#[test]
fn facts_have_the_names_that_the_library_gives_them() {
    let place = Place::new();
    let _holder = place.hold("x");
    let entry = lock_core::Entry::new(None, lock_core::Holder::default());
    let mut entry = serde_json::to_value(entry).unwrap();
    let who = entry.as_object_mut().unwrap().remove("holder").unwrap();
    let mut expected = [facts(&entry), facts(&who)].concat();
    // Holders and waiters are in lists of their own.
    expected.retain(|name| name != "holds");
    expected.sort();
    let shown = place.show("x");
    assert_eq!(facts(&shown["holders"][0]), expected);
    assert_eq!(shown["holders"][0]["kind"], "exclusive");
    let attempt = shown["holders"][0]["attempt"].as_str().expect("an attempt");
    let (_, told, _) = place.run(&["revoke", "x", attempt, "--yes", "--json"]);
    assert_eq!(facts(&serde_json::from_str(&told).unwrap()), ["attempt", "name", "revoked"]);

    let guarantees = serde_json::to_value(lock_core::Guarantees::least("x")).unwrap();
    let (_, promises, _) = place.run(&["stores", "--store", place.store(), "--json"]);
    let promises: serde_json::Value = serde_json::from_str(&promises).unwrap();
    for name in facts(&guarantees) {
        let known = facts(&promises);
        let parts = [name.clone(), format!("{name}_min"), format!("{name}_max")];
        assert!(parts.iter().any(|name| known.contains(name)), "{name} is not in {known:?}");
    }
    assert_eq!(promises["fairness"], "fifo");

    let mut leader = place.start(&["elect", "e", "v"]);
    leader.line();
    let leads: serde_json::Value =
        serde_json::from_str(&place.run(&["leader", "e", "--json"]).1).unwrap();
    assert_eq!(facts(&leads), ["holder", "name", "token", "value"]);
    assert!(leads["holder"]["description"].is_string(), "{leads}");
}

#[test]
fn a_busy_lock_is_reported_with_its_holder() {
    let place = Place::new();
    let _holder = place.hold("x");
    for command in [&["run", "x", "--no-wait", "true"] as &[&str], &["hold", "x", "--no-wait"]] {
        let (code, _, error) = place.run(command);
        let told = error.contains("lock x is busy: held by distlock pid ");
        assert!(code == Some(75) && told && error.contains(", runs sh for "), "{error}");
    }
    let mut leader = place.start(&["elect", "e", "v"]);
    leader.line();
    let (code, _, error) = place.run(&["elect", "e", "w", "--no-wait"]);
    let told = error.contains("another client leads e: held by distlock pid ");
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
