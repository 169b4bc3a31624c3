//! The users of a file: several users, and an unknown one without an environment, as under cron.

use std::{
    fs::{self, Permissions},
    os::unix::{
        fs::{MetadataExt, PermissionsExt, chown},
        process::CommandExt,
    },
    path::Path,
    process::Command,
};

use crate::file::child;

/// Two users without a name, and their group.
const USERS: [u32; 2] = [61_001, 61_002];
const GROUP: u32 = 61_000;

fn user(id: u32) -> impl FnOnce(&mut Command) {
    move |command| {
        command.uid(id).gid(GROUP);
    }
}

fn is_root(path: &Path) -> bool {
    let root = fs::metadata(path).unwrap().uid() == 0;
    if !root {
        println!("not run: only root can play several users");
    }
    root
}

/// The permissions of a file.
pub fn mode(path: &Path) -> u32 {
    fs::metadata(path).unwrap().permissions().mode() & 0o7777
}

/// A file of a group, in a directory whose group its files take over.
#[test]
fn two_users_share_a_named_file() {
    let directory = tempfile::tempdir().unwrap();
    if !is_root(directory.path()) {
        return;
    }
    let path = directory.path().join("locks.db");
    chown(directory.path(), None, Some(GROUP)).unwrap();
    fs::set_permissions(directory.path(), Permissions::from_mode(0o2770)).unwrap();
    fs::write(&path, "").unwrap();
    fs::set_permissions(&path, Permissions::from_mode(0o660)).unwrap();
    let url = format!("sqlite:{}", path.display());
    for [first, second] in [USERS, [USERS[1], USERS[0]]] {
        let mut holder = child::start("hold", &url, user(first));
        let token: u64 = holder.says().parse().unwrap();
        let mut other = child::start("try", &url, user(second));
        assert_eq!(other.says(), "busy");
        other.ends();
        holder.go();
        assert_eq!(holder.says(), "released");
        let mut other = child::start("try", &url, user(second));
        assert!(other.says().parse::<u64>().unwrap() > token);
        other.ends();
        holder.ends();
    }
}

#[test]
fn a_user_without_rights_is_denied() {
    let directory = tempfile::tempdir().unwrap();
    if !is_root(directory.path()) {
        return;
    }
    fs::set_permissions(directory.path(), Permissions::from_mode(0o755)).unwrap();
    let path = directory.path().join("locks.db");
    let url = format!("sqlite:{}", path.display());
    let mut own = child::start("open", &url, |_| {});
    assert_eq!(own.says(), path.display().to_string());
    own.ends();
    let mut stranger = child::start("open", &url, user(USERS[0]));
    let said = stranger.says();
    assert!(said.contains("sqlite denied connect") && said.contains("locks.db"), "{said}");
}

/// Without a path it is the user's own file, which no other user may use.
#[test]
fn the_default_file_is_open_to_its_user_only() {
    let home = tempfile::tempdir().unwrap();
    let home = home.path();
    for (variable, value, file) in [
        ("XDG_STATE_HOME", home.join("state"), home.join("state/distlock/locks.db")),
        ("HOME", home.to_owned(), home.join(".local/state/distlock/locks.db")),
    ] {
        let mut other = child::start("open", "sqlite:", |command| {
            command.env_clear().env(variable, value);
        });
        assert_eq!(other.says(), file.display().to_string());
        other.ends();
        assert_eq!(mode(&file), 0o600);
        assert_eq!(mode(file.parent().unwrap()), 0o700);
    }
}

/// Cron sets a home. Without one, the user database has it. A user that it does not know gets an
/// error.
#[test]
fn without_a_home_the_error_asks_for_a_path() {
    let directory = tempfile::tempdir().unwrap();
    if !is_root(directory.path()) {
        return;
    }
    let mut nobody = child::start("open", "sqlite:", |command| {
        user(USERS[0])(command.env_clear());
    });
    let said = nobody.says();
    assert!(said.contains("XDG_STATE_HOME") && said.contains("sqlite:/"), "{said}");
}
