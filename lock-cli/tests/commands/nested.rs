//! distlock in the command of another distlock: both use the same store.

use std::process::Command;

use crate::place::{Place, said};

/// Runs the program in the place's folder, without a store in the environment.
fn output(place: &Place, arguments: &[&str]) -> (Option<i32>, String, String) {
    let mut command: Command = place.command(arguments);
    command.env_remove("DISTLOCK_STORE").env("XDG_CONFIG_HOME", place.path());
    said(&command.current_dir(place.path()).output().expect("it starts"))
}

/// The inner one would wait until its own command has ended.
#[test]
fn a_lock_that_is_held_above_is_refused() {
    let place = Place::new();
    let wait = ["--wait", "10s", "--"];
    let run = |outer: &[&'static str], inner: &[&'static str]| {
        place.run(&[outer, &wait, &[INNER], inner].concat())
    };
    let own = |(code, _, error): &(Option<i32>, String, String)| {
        *code == Some(64) && error.contains("lock a is held by process")
    };
    let (a, b) = (["run", "a"], ["run", "b"]);
    let kind = |kind: [&'static str; 2]| [&["run", "a"] as &[_], &kind].concat();
    let (shared, permits) = (["run", "a", "--shared"], kind(["--permits", "2"]));
    for (outer, inner) in [
        (&a as &[&str], [&a as &[&str], &wait, &["true"]].concat()),
        (&a, [&b as &[&str], &wait, &[INNER], &a, &wait, &["true"]].concat()),
        (&a, [&shared as &[&str], &wait, &["true"]].concat()),
        (&shared, [&a as &[&str], &wait, &["true"]].concat()),
        (&a, ["hold", "a", "--wait", "10s"].to_vec()),
        (&a, ["elect", "a", "v", "--wait", "10s"].to_vec()),
        (&["elect", "a", "v"], [&a as &[&str], &wait, &["true"]].concat()),
        (&permits, [&kind(["--permits", "3"]) as &[_], &wait, &["true"]].concat()),
        (&kind(["--permits", "1"]), [&kind(["--permits", "1"]) as &[_], &wait, &["true"]].concat()),
    ] {
        let ended = run(outer, &inner);
        assert!(own(&ended), "{outer:?} {inner:?}: {ended:?}");
    }
    for (outer, inner, code) in [
        (&a as &[&str], [&b as &[&str], &wait, &["true"]].concat(), 0),
        (&shared, [&shared as &[&str], &wait, &["true"]].concat(), 0),
        (&permits, [&permits as &[&str], &wait, &["true"]].concat(), 0),
        // The answer to a try is true.
        (&a, [&a as &[&str], &["--no-wait", "true"]].concat(), 75),
    ] {
        let ended = run(outer, &inner);
        assert_eq!(ended.0, Some(code), "{outer:?} {inner:?}: {ended:?}");
    }
}

#[test]
fn a_name_in_another_store_is_another_lock() {
    let place = Place::new();
    let other = format!("sqlite:{}", place.path().join("other").display());
    let inner = [INNER, "run", "--store", &other, "a", "--wait", "10s", "true"];
    let (code, _, error) = place.run(&[&["run", "a", "--"] as &[&str], &inner].concat());
    assert_eq!(code, Some(0), "{error}");
}

/// `at`, say, keeps the variables of the command for a time when nothing is held any more.
#[test]
fn the_variable_of_a_command_that_has_ended_refuses_nothing() {
    let place = Place::new();
    let (_, held, error) = place.run(&["run", "a", "--", "sh", "-c", "echo $DISTLOCK_HELD"]);
    assert!(held.contains("\"a\""), "{held}{error}");
    for held in [held.trim(), "", "none", "[{}]"] {
        let mut later = place.command(&["run", "a", "--wait", "10s", "true"]);
        let (code, _, error) = said(&later.env("DISTLOCK_HELD", held).output().expect("it starts"));
        assert_eq!((code, error.as_str()), (Some(0), ""), "{held}");
    }
}

const INNER: &str = env!("CARGO_BIN_EXE_distlock");

#[test]
fn the_command_in_another_folder_finds_the_file() {
    let place = Place::new();
    let script = "cd / && exec \"$0\" show a";
    let run = ["run", "a", "--store", "sqlite:my%20db", "--", "sh", "-c", script, INNER];
    let (code, shown, error) = output(&place, &run);
    assert!(code == Some(0) && shown.contains("a is held by"), "{code:?}: {shown}{error}");
    assert!(place.path().join("my db").exists());
}

#[cfg(feature = "redis")]
#[test]
fn the_config_files_password_is_the_commands_too() {
    let runtime = tokio::runtime::Runtime::new().expect("a runtime");
    let server = lock_lab::Redis::builder().password("QXZQXZ");
    let server = runtime.block_on(server.start()).expect("a server");
    let (_, address) =
        server.url().rsplit_once('@').map(|(a, b)| (a.to_owned(), b.to_owned())).expect("a login");
    let place = Place::new();
    std::fs::create_dir(place.path().join("distlock")).unwrap();
    let config = format!("store = \"{}\"", server.url());
    std::fs::write(place.path().join("distlock/config.toml"), config).unwrap();
    let run = ["run", "a", "--", INNER, "run", "b", "--", "sh", "-c", "echo $DISTLOCK_STORE"];
    let (code, said, error) = output(&place, &run);
    assert_eq!((code, said.trim()), (Some(0), format!("redis://{address}").as_str()), "{error}");
}
