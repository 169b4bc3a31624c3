//! Each failure has a code and a sentence, and shows no secrets.

use crate::place::{Place, said};

#[test]
fn every_failure_has_its_code() {
    let place = Place::new();
    for (arguments, expected) in [
        (&["run"] as &[&str], 64),
        (&["run", "x"], 64),
        (&["run", "", "true"], 64),
        (&["run", "x", "--permits", "0", "true"], 64),
        (&["run", "x", "--ttl", "1ms", "true"], 64),
        (&["run", "x", "--wait", "soon", "true"], 64),
        (&["run", "x", "--at-least", "1h", "--max-hold", "10s", "true"], 64),
        (&["run", "x", "--at-least", "10s", "--max-hold", "10s", "true"], 64),
        (&["run", "x", "--max-hold", "0s", "true"], 64),
        (&["run", "x", "--no-wait", "--wait-through-outages", "true"], 64),
        (&["run", "x", "--permits", "2", "--shared", "true"], 64),
        (&["run", "x", "--store", "redis://127.0.0.1:1", "true"], unreachable_redis()),
        (&["ls", "--store", "nonsense:"], 64),
        (&["show", "x", "--store", "sqlite:/proc/none/db"], 78),
        (&["show", "x", "--store", "sqlite:/proc/db"], 77),
        (&["revoke", "x", "a"], 64),
        (&["revoke", "x", "a", "--yes"], 1),
        (&["leader", "x"], 1),
    ] {
        let (code, _, error) = place.run(arguments);
        assert!(code == Some(expected) && !error.is_empty(), "{arguments:?}: {code:?} {error}");
    }
}

#[test]
fn a_store_inside_one_process_is_refused() {
    let place = Place::new();
    for command in [&["run", "x", "true"] as &[&str], &["hold", "x"], &["elect", "x", "v"]] {
        let (code, out, error) = place.run(&[&["--store", "memory:"], command].concat());
        let told = error.contains("inside one process") && error.contains("sqlite:");
        assert!(code == Some(64) && out.is_empty() && told, "{command:?}: {code:?} {out}{error}");
        let mut meant = place.command(command);
        let (code, _, error) = said(&meant.env("DISTLOCK_STORE", "memory:a").output().unwrap());
        assert!(code == Some(78) && error.contains("DISTLOCK_STORE"), "{code:?} {error}");
    }
}

#[test]
fn a_missing_folder_is_named() {
    let place = Place::new();
    let folder = place.path().join("new").display().to_string();
    let (code, _, error) = place.run(&["ls", "--store", &format!("sqlite:{folder}/db")]);
    let named = error.contains(&format!("there is no directory {folder};"));
    assert!(code == Some(78) && named, "{code:?} {error}");
    assert!(!place.path().join("new").exists(), "a misspelt path is not made");
}

#[test]
fn a_misspelt_option_is_no_command() {
    let place = Place::new();
    for arguments in [
        &["run", "x", "--nowait", "--", "true"] as &[&str],
        &["run", "x", "--ttl", "5s", "-z", "true"],
        &["elect", "x", "v", "--nowait", "--", "true"],
    ] {
        let (code, _, error) = place.run(arguments);
        let named = error.contains("'--nowait'") || error.contains("'-z'");
        assert!(code == Some(64) && named, "{arguments:?}: {code:?} {error}");
    }
    // After `--`, and after a command's name, all words are the command's.
    assert_eq!(place.run(&["run", "x", "--", "--nowait"]).0, Some(127));
    assert_eq!(place.run(&["run", "x", "sh", "-c", "exit 5", "--quiet"]).0, Some(5));
    assert_eq!(place.run(&["elect", "x", "v", "sh", "-c", "exit 6", "--"]).0, Some(6));
}

/// The exit code for a store that is not there, or not compiled in.
fn unreachable_redis() -> i32 {
    if cfg!(feature = "redis") { 69 } else { 64 }
}

#[test]
fn a_ttl_that_is_too_short_for_the_grace_is_refused_with_all_numbers() {
    let place = Place::new();
    let (code, _, error) = place.run(&["run", "x", "--ttl", "5s", "--on-lost", "term:5s", "true"]);
    assert_eq!(code, Some(64));
    for number in
        ["TTL of 5s", "grace of 5s", "margin of 250ms are 15.75s", "--ttl 18s", "term:1.416s"]
    {
        assert!(error.contains(number), "{number:?} is not in {error:?}");
    }
    // The store's own TTL counts as well.
    assert_eq!(place.run(&["run", "x", "--on-lost", "term:5s", "true"]).0, Some(64));
    assert_eq!(place.run(&["run", "x", "--ttl", "18s", "--on-lost", "term:5s", "true"]).0, Some(0));
}

#[test]
fn a_config_file_names_the_store() {
    let place = Place::new();
    let config = place.path().join("distlock/config.toml");
    std::fs::create_dir(place.path().join("distlock")).unwrap();
    let run = |text: &str, arguments: &[&str]| {
        std::fs::write(&config, text).unwrap();
        let mut command = place.command(arguments);
        command.env_remove("DISTLOCK_STORE").env("XDG_CONFIG_HOME", place.path());
        said(&command.output().unwrap())
    };
    let script = ["run", "x", "--", "sh", "-c", "echo $DISTLOCK_STORE"];
    let url = format!("sqlite:{}", place.path().join("other").display());
    let (code, store, _) = run(&format!("store = \"{url}\""), &script);
    assert_eq!((code, store.trim()), (Some(0), url.as_str()));
    for wrong in ["store = \"nonsense:\"", "store = nonsense", "shop = \"sqlite:\""] {
        let (code, _, error) = run(wrong, &["ls"]);
        assert!(code == Some(78) && error.contains("config.toml"), "{wrong}: {code:?} {error}");
    }
    // If a store is named, the file's store is not needed.
    let named = ["ls", "--store", &url];
    assert_eq!(run("store = \"nonsense:\"", &named).0, Some(0));
}

/// Each of these led to this user's own file: in cron, on every host.
#[test]
fn a_store_is_not_chosen_by_mistake() {
    let place = Place::new();
    let run = |variables: &[(&str, &str)], options: &[&str]| {
        let mut command = place.command(&[&["run", "x"], options, &["--", "echo", "ran"]].concat());
        command.env_remove("DISTLOCK_STORE").env("HOME", place.path());
        said(&command.envs(variables.iter().copied()).output().expect("it starts"))
    };
    let (url, windows) = (place.store(), format!("{}\r", place.store()));
    for (variables, options, told) in [
        (&[("DISTLOCK_STORE", "")] as &[_], &[] as &[&str], "DISTLOCK_STORE is empty"),
        (&[("DISTLOCK_STORES", url)], &[], "DISTLOCK_STORES is no variable"),
        (&[("DISTLOCK_URL", url)], &[], "DISTLOCK_URL is no variable"),
        (&[], &["--require-store"], "no store is named"),
        (&[("DISTLOCK_STORE", windows.as_str())], &[], "line end"),
    ] {
        let (code, out, error) = run(variables, options);
        let refused = code == Some(78) && out.is_empty() && error.contains(told);
        assert!(refused, "{variables:?} {options:?}: {code:?} {out}{error}");
    }
    assert!(!place.path().join(".local").exists(), "no file is made");
    let named = [("DISTLOCK_STORE", url), ("DISTLOCK_STORES", "x")];
    assert_eq!(run(&named, &["--require-store"]).0, Some(0));
    assert_eq!(run(&[("DISTLOCK_STORE", "")], &["--store", url, "--require-store"]).0, Some(0));
}

#[test]
fn options_and_urls_write_durations_alike() {
    let place = Place::new();
    let url = format!("{}?ttl=1m30s", place.store());
    assert_eq!(place.run(&["run", "x", "--store", &url, "true"]).0, Some(0));
    for ttl in ["1m30s", "1m 30.5s", "90500ms"] {
        assert_eq!(place.run(&["run", "x", "--ttl", ttl, "true"]).0, Some(0), "{ttl}");
    }
    let (code, _, error) = place.run(&["run", "x", "--ttl", "15", "true"]);
    assert!(code == Some(64) && error.contains("as in 15s or 1m30s"), "{code:?} {error}");
}

#[test]
fn a_config_file_that_is_a_pipe_is_refused() {
    let place = Place::new();
    std::fs::create_dir(place.path().join("distlock")).unwrap();
    let pipe = place.path().join("distlock/config.toml").display().to_string();
    assert!(place.other("mkfifo", &[&pipe]).status().unwrap().success());
    let mut ls = place.command(&["ls"]);
    ls.env_remove("DISTLOCK_STORE").env("XDG_CONFIG_HOME", place.path());
    let (code, _, error) = said(&ls.output().unwrap());
    assert!(code == Some(78) && error.contains("not a regular file"), "{code:?}: {error}");
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
