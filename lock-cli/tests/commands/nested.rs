//! distlock in the command of another distlock: both use the same store.

use std::process::Command;

use crate::place::{Place, said};

/// Runs the program in the place's folder, without a store in the environment.
fn output(place: &Place, arguments: &[&str]) -> (Option<i32>, String, String) {
    let mut command: Command = place.command(arguments);
    command.env_remove("DISTLOCK_STORE").env("XDG_CONFIG_HOME", place.path());
    said(&command.current_dir(place.path()).output().expect("it starts"))
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
