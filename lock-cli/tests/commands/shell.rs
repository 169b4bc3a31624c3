//! What shells, pagers and cron see.

use std::{
    io::Write,
    process::{Command, Stdio},
};

use crate::place::{Place, said};

#[test]
fn shells_accept_their_completions() {
    let place = Place::new();
    for shell in ["bash", "zsh", "fish"] {
        let (code, script, _) = place.run(&["completions", shell]);
        assert!(code == Some(0) && script.contains("on-lost"), "{shell}: {script}");
        assert!(
            !script.contains("supervise"),
            "{shell}: the hidden commands are nobody's business"
        );
        let mut check = place.other(shell, &["-n"]);
        let mut check = check.stdin(Stdio::piped()).stderr(Stdio::piped()).spawn().expect(shell);
        check.stdin.take().unwrap().write_all(script.as_bytes()).unwrap();
        let (code, _, error) = said(&check.wait_with_output().unwrap());
        assert_eq!((code, error.as_str()), (Some(0), ""), "{shell}");
    }
}

#[test]
fn bash_completes_commands_and_values() {
    let place = Place::new();
    let file = place.path().join("completions");
    std::fs::write(&file, place.run(&["completions", "bash"]).1).unwrap();
    let script = r#". "$0"; COMP_WORDS=(distlock "$@"); COMP_CWORD=$#
        _distlock distlock "${!#}" "${COMP_WORDS[$#-1]}"; echo "${COMPREPLY[@]}""#;
    let file = file.display().to_string();
    for (typed, expected) in [
        (&["r"] as &[&str], "run revoke\n"),
        (&["run", "--on-lost", ""], "term kill ignore\n"),
        (&["ls", "--log", ""], "off error warn info debug trace\n"),
    ] {
        let mut bash = place.other("bash", &[&["-c", script, &file], typed].concat());
        let (code, completed, error) = said(&bash.output().unwrap());
        assert_eq!((code, completed.as_str()), (Some(0), expected), "{error}");
    }
}

#[test]
fn every_command_for_people_has_examples() {
    let place = Place::new();
    let others = ["ls", "show", "watch", "revoke", "stores", "schema", "check", "hold"];
    for command in ["run", "elect", "leader"].into_iter().chain(others) {
        let (code, help, _) = place.run(&[command, "--help"]);
        let example = format!("\n  distlock {command}");
        let alone = help.split_once("Examples:").is_some_and(|(_, rest)| rest.contains(&example));
        assert!(code == Some(0) && alone, "{help}");
        let several = help.contains("--store may be given several times");
        assert_eq!(several, command == "check", "{help}");
        assert!(!help.contains("`check`"), "another command's business: {help}");
    }
}

#[test]
fn man_renders_its_pages() {
    let place = Place::new();
    let folder = place.path().join("man");
    assert_eq!(place.run(&["man", &folder.display().to_string()]).0, Some(0));
    let pages: Vec<_> = std::fs::read_dir(&folder).unwrap().map(|page| page.unwrap()).collect();
    let names: Vec<_> = pages.iter().map(|page| page.file_name()).collect();
    assert!(names.contains(&"distlock.1".into()), "{names:?}");
    assert!(names.contains(&"distlock-run.1".into()), "{names:?}");
    assert!(!names.contains(&"distlock-supervise.1".into()), "{names:?}");
    for page in pages {
        let path = page.path().display().to_string();
        let mut man = place.other("man", &["--warnings", "--encoding=UTF-8", "-l", &path]);
        let (code, text, error) = said(&man.env("MANPAGER", "cat").output().expect("man"));
        assert_eq!((code, error.as_str()), (Some(0), ""), "{path}");
        assert!(text.contains("SYNOPSIS") && text.contains("distlock"), "{path}: {text}");
    }
}

#[test]
fn a_closed_stdout_is_no_panic() {
    let place = Place::new();
    let (reader, writer) = std::io::pipe().unwrap();
    drop(reader);
    let mut stores = place.command(&["stores"]);
    let (code, _, error) = said(&stores.stdout(writer).stderr(Stdio::piped()).output().unwrap());
    assert_eq!((code, error.as_str()), (Some(0), ""), "nobody reads it");
    let program = env!("CARGO_BIN_EXE_distlock");
    for arguments in [&["stores"] as &[&str], &["run", "x", "--", "echo"]] {
        let script = "exec \"$0\" \"$@\" >&-";
        let mut closed = place.other("sh", &[&["-c", script, program], arguments].concat());
        let (code, _, error) = said(&closed.output().unwrap());
        assert_eq!((code, error.as_str()), (Some(0), ""), "{arguments:?}: there is none");
    }
}

/// The script of the documentation, as it stands there.
#[test]
fn a_script_knows_how_long_the_lock_is_certain() {
    let place = Place::new();
    let pages = include_str!("../../../docs/cli.md").split("```sh\n").skip(1);
    let mut scripts = pages.filter_map(|page| page.split_once("```")).map(|(script, _)| script);
    let script = scripts.find(|script| script.contains("DISTLOCK_DEADLINE_MS")).expect("a script");
    let file = place.path().join("in-time.sh").display().to_string();
    std::fs::write(&file, script).unwrap();
    let run = |ttl| place.run(&["run", "x", "--ttl", ttl, "--", "sh", &file, "echo", "done"]);
    let (code, out, error) = run("10m");
    assert_eq!((code, out.as_str(), error.as_str()), (Some(0), "done\n", ""));
    let (code, out, error) = run("1m");
    assert!(code == Some(75) && out.is_empty() && error.contains("is certain for"), "{error}");
}

/// The embedded store in the user's home, which is all that cron says.
#[test]
fn crons_environment_is_enough() {
    let place = Place::new();
    let script = "echo $DISTLOCK_NAME $DISTLOCK_STORE";
    let mut run = place.command(&["run", "x", "--", "/bin/sh", "-c", script]);
    run.env_remove("DISTLOCK_STORE").env("HOME", place.path()).env("SHELL", "/bin/sh");
    let (code, text, error) = said(&run.output().unwrap());
    assert_eq!((code, text.as_str(), error.as_str()), (Some(0), "x sqlite:\n", ""));
    assert!(place.path().join(".local/state/distlock/locks.db").exists());
}

#[test]
fn no_environment_is_enough_where_the_store_is_named() {
    let place = Place::new();
    let store = format!("sqlite:{}", place.path().join("db").display());
    let mut run = Command::new(env!("CARGO_BIN_EXE_distlock"));
    run.args(["run", "--store", &store, "x", "--", "echo", "here"]).env_clear();
    let (code, text, error) = said(&run.output().unwrap());
    assert_eq!((code, text.as_str(), error.as_str()), (Some(0), "here\n", ""));
}
