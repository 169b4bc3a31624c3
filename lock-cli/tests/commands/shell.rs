//! The program under shells, pagers and cron.

use std::{
    io::Write,
    process::{Command, Stdio},
    time::Duration,
};

use lock_core::Clock;

use super::terminal::Terminal;
use crate::place::{Place, said};

#[test]
fn shells_accept_their_completions() {
    let place = Place::new();
    for shell in ["bash", "zsh", "fish"] {
        let (code, script, _) = place.run(&["completions", shell]);
        assert!(code == Some(0) && script.contains("distlock"), "{shell}: {script}");
        let mut check = place.other(shell, &["-n"]);
        let mut check = check.stdin(Stdio::piped()).stderr(Stdio::piped()).spawn().expect(shell);
        check.stdin.take().unwrap().write_all(script.as_bytes()).unwrap();
        let (code, _, error) = said(&check.wait_with_output().unwrap());
        assert_eq!((code, error.as_str()), (Some(0), ""), "{shell}");
    }
}

/// The completions that a shell offers for the last of these words, by the script of this program.
/// Without their descriptions.
fn offered(place: &Place, shell: &str, words: &[&str]) -> Vec<String> {
    let script = match shell {
        // Only bash itself splits words as bash does.
        "bash" => return offered_by_bash(place, words),
        // Its completion system shows them on a terminal only.
        "zsh" => {
            r#"compdef() { }; _describe() { [[ $@[-1] == other ]] && print -rl -- $other }
               . <(distlock completions zsh); words=(distlock "$@"); CURRENT=$#words
               _clap_dynamic_completer_distlock"#
        }
        _ => {
            r#"distlock completions fish | source
               complete --do-complete (string join -- ' ' distlock $argv)"#
        }
    };
    let name = if shell == "fish" { "--" } else { "shell" };
    let mut command = place.other(shell, &[&["-c", script, name], words].concat());
    let program = std::path::Path::new(env!("CARGO_BIN_EXE_distlock")).parent().unwrap();
    command.env("PATH", format!("{}:/usr/bin:/bin", program.display())).env("HOME", place.path());
    let (code, text, error) = said(&command.output().expect(shell));
    assert_eq!((code, error.as_str()), (Some(0), ""), "{shell}: {words:?}");
    let value = |line: &str| match shell {
        // A colon of the value has a backslash before it.
        "zsh" => line.replace("\\:", "\t").split(':').next().unwrap_or_default().replace('\t', ":"),
        _ => line.split('\t').next().unwrap_or_default().to_owned(),
    };
    text.lines().map(value).filter(|value| !value.is_empty()).collect()
}

/// The longest time for which the program asks the store.
const LIMIT: Duration = Duration::from_secs(1);

/// The same, with what the store knows. Only a user who has waited for as long as the program asks
/// the store presses the key again: on a busy machine the store is late.
fn offered_by_store(place: &Place, shell: &str, words: &[&str]) -> Vec<String> {
    for _ in 0..30 {
        let start = Clock::Boot.now();
        let found = offered(place, shell, words);
        let is_late = Clock::Boot.now().since(start) >= LIMIT;
        if !is_late || found.iter().any(|word| !word.starts_with('-')) {
            return found;
        }
    }
    panic!("{shell}: the store is late each time: {words:?}");
}

/// The same of a bash: a user types the words and TAB at its terminal.
fn offered_by_bash(place: &Place, words: &[&str]) -> Vec<String> {
    let mut shell = Terminal::open(place);
    let offered = place.path().join("offered");
    let (last, words) = words.split_last().expect("a word");
    let words: String = words.iter().map(|word| format!("'{word}' ")).collect();
    let tell = format!(
        r#"ask=$(complete -p distlock); ask=${{ask##*-F }}; ask=${{ask% *}}
           tell() {{ $ask "$@"; printf '%s\n' "${{COMPREPLY[@]}}" > '{}'; COMPREPLY=(); printf 'to''ld'; }}"#,
        offered.display()
    );
    shell.press(&format!(". <(distlock completions bash)\n{tell}\ncomplete -F tell distlock\n"));
    shell.press(&format!("distlock {words}{last}\t"));
    shell.until("told");
    let offered = std::fs::read_to_string(offered).expect("what it offers");
    offered.lines().filter(|word| !word.is_empty()).map(str::to_owned).collect()
}

const SHELLS: [&str; 3] = ["bash", "zsh", "fish"];

#[test]
fn shells_complete_commands_and_values() {
    let place = Place::new();
    for shell in SHELLS {
        for (typed, expected) in [
            (&["r"] as &[&str], &["run", "revoke"] as &[&str]),
            (&["run", "--on-lost", ""], &["term", "kill", "ignore"]),
            (&["ls", "--log", ""], &["off", "error", "warn", "info", "debug", "trace"]),
            (&["supervis"], &[]),
        ] {
            assert_eq!(offered(&place, shell, typed), expected, "{shell}: {typed:?}");
        }
    }
}

#[test]
fn shells_complete_names_and_attempts_from_the_store() {
    let place = Place::new();
    let names = ["jobs/nightly", "jobs/weekly", "deploy", "$(touch x)", "-x y"];
    let lock = |name| ["hold", "--ttl", "1m", "--", name];
    let mut holders: Vec<_> = names.iter().map(|name| place.start(&lock(name))).collect();
    holders.iter_mut().for_each(|holder| assert!(holder.line().starts_with("holding ")));
    let attempt = place.show("deploy")["holders"][0]["attempt"].as_str().unwrap().to_owned();
    for shell in SHELLS {
        for command in ["show", "ls", "watch", "revoke", "run", "hold"] {
            let jobs = offered_by_store(&place, shell, &[command, "jobs/"]);
            assert_eq!(jobs, ["jobs/nightly", "jobs/weekly"], "{shell}: {command}");
        }
        let all = offered_by_store(&place, shell, &["show", ""]);
        let names = all.iter().filter(|word| !word.starts_with('-'));
        // A shell would run one of the others, and take another one for an option.
        assert!(names.eq(["deploy", "jobs/nightly", "jobs/weekly"]), "{shell}: {all:?}");
        let found = offered_by_store(&place, shell, &["revoke", "deploy", &attempt[..4]]);
        assert_eq!(found, [attempt.as_str()], "{shell}");
        let elsewhere = format!("sqlite:{}", place.path().join("empty").display());
        let none = offered(&place, shell, &["--store", &elsewhere, "show", "j"]);
        assert!(none.is_empty(), "{shell}: {none:?}");
    }
}

#[test]
fn the_store_is_the_one_that_is_named_on_the_line() {
    let (place, other) = (Place::new(), Place::new());
    let names = ["jobs/nightly", "jobs:weekly", "jobs:yearly"];
    let mut holders: Vec<_> = names.iter().map(|name| other.start(&["hold", name])).collect();
    holders.iter_mut().for_each(|holder| assert!(holder.line().starts_with("holding ")));
    let named = format!("--store={}", other.store());
    for shell in SHELLS {
        for store in [&["--store", other.store()] as &[&str], &[&named]] {
            let of_other =
                |last| offered_by_store(&place, shell, &[store, &["show", last]].concat());
            assert_eq!(of_other("jobs/"), ["jobs/nightly"], "{shell}: {store:?}");
            // bash inserts its completion after the colon.
            let expected = if shell == "bash" { "weekly" } else { "jobs:weekly" };
            assert_eq!(of_other("jobs:w"), [expected], "{shell}: {store:?}");
        }
    }
    let mut shell = Terminal::open(&place);
    shell.press(". <(distlock completions bash)\n");
    shell.press(&format!("distlock --store {} show jobs:w\t", other.store()));
    shell.until("show jobs:weekly ");
}

/// The words at the cursor have a password, which the program hides from other users.
#[cfg(feature = "redis")]
#[test]
fn a_store_with_a_password_is_asked_for_names() {
    let runtime = tokio::runtime::Runtime::new().unwrap();
    let server = lock_lab::Redis::builder().password("QXZQXZ");
    let server = runtime.block_on(server.start()).expect("a server");
    let mut holder = Place::on(server.url()).start(&["hold", "jobs/nightly"]);
    assert!(holder.line().starts_with("holding "));
    let place = Place::new();
    for shell in SHELLS {
        let names = offered_by_store(&place, shell, &["--store", &server.url(), "show", "jobs/"]);
        assert_eq!(names, ["jobs/nightly"], "{shell}");
    }
}

/// A user who only presses TAB creates no file.
#[test]
fn a_key_makes_no_file() {
    let place = Place::new();
    let folder = place.path().join("state");
    std::fs::create_dir(&folder).unwrap();
    let named = format!("sqlite:{}", folder.join("named.db").display());
    for shell in SHELLS {
        for store in [named.as_str(), "sqlite:"] {
            let none = offered(&place, shell, &["--store", store, "show", "j"]);
            assert!(none.is_empty(), "{shell}: {store}: {none:?}");
        }
    }
    assert_eq!(std::fs::read_dir(&folder).unwrap().count(), 0);
    assert!(!place.path().join(".local/state/distlock").exists(), "the user's own");
}

#[test]
fn a_store_that_is_out_of_reach_completes_nothing_and_says_nothing() {
    let place = Place::new();
    let folder = format!("sqlite:{}", place.path().join("no/folder/db").display());
    for shell in SHELLS {
        for store in [folder.as_str(), "nonsense:", "no url"] {
            let none = offered(&place, shell, &["--store", store, "show", "j"]);
            assert!(none.is_empty(), "{shell}: {store}: {none:?}");
        }
    }
}

#[test]
fn every_command_for_people_has_examples() {
    let place = Place::new();
    let others =
        ["ls", "show", "watch", "revoke", "stores", "schema", "check", "hold", "completions"];
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
fn man_pages_name_variables_and_files_and_keep_examples_as_they_are() {
    let place = Place::new();
    let folder = place.path().join("man");
    assert_eq!(place.run(&["man", &folder.display().to_string()]).0, Some(0));
    let page = |name: &str| {
        let path = folder.join(name).display().to_string();
        // A narrow terminal: no example fits into it.
        let mut man = place.other("man", &["--encoding=UTF-8", "-l", &path]);
        said(&man.env("MANPAGER", "cat").env("MANWIDTH", "60").output().expect("man")).1
    };
    for (name, command) in
        [("distlock.1", ""), ("distlock-run.1", "run"), ("distlock-show.1", "show")]
    {
        let text = page(name);
        for part in ["ENVIRONMENT\n", "DISTLOCK_STORE", "FILES\n", "/etc/distlock/config.toml"] {
            assert!(text.contains(part), "{name} has no {part}: {text}");
        }
        assert_eq!(text.contains("DISTLOCK_TOKEN\n"), command == "run", "{name}");
        let help = match command {
            "" => place.run(&["--help"]).1,
            command => place.run(&[command, "--help"]).1,
        };
        let (_, examples) = help.split_once("Examples:\n").expect("examples");
        for example in examples.lines().take_while(|line| !line.is_empty()) {
            assert!(text.contains(example.trim()), "{name} breaks {example:?}: {text}");
        }
        assert!(!text.contains("EXTRA"), "{text}");
    }
    let codes = page("distlock.1");
    let (_, codes) = codes.split_once("EXIT STATUS\n").expect("exit codes");
    assert!(codes.lines().any(|line| line.trim_start().starts_with("64  wrong usage")), "{codes}");
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

/// The script of the documentation, unchanged.
#[test]
fn a_script_knows_how_long_the_lock_is_certain() {
    let place = Place::new();
    let pages = include_str!("../../../docs/scripts.md").split("```sh\n").skip(1);
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

/// The embedded store in the user's home: cron names no more than that.
#[test]
fn crons_environment_is_enough() {
    let place = Place::new();
    let script = "echo $DISTLOCK_NAME $DISTLOCK_STORE";
    let mut run = place.command(&["run", "x", "--", "/bin/sh", "-c", script]);
    run.env_remove("DISTLOCK_STORE").env("HOME", place.path()).env("SHELL", "/bin/sh");
    let (code, text, error) = said(&run.output().unwrap());
    assert_eq!((code, text.as_str()), (Some(0), "x sqlite:\n"), "{error}");
    assert!(place.path().join(".local/state/distlock/locks.db").exists());
}

#[test]
fn an_empty_environment_is_enough_if_the_store_is_named() {
    let place = Place::new();
    let store = format!("sqlite:{}", place.path().join("db").display());
    let mut run = Command::new(env!("CARGO_BIN_EXE_distlock"));
    run.args(["run", "--store", &store, "x", "--", "echo", "here"]).env_clear();
    let (code, text, error) = said(&run.output().unwrap());
    assert_eq!((code, text.as_str(), error.as_str()), (Some(0), "here\n", ""));
}
