//! The program `distlock`, if it is this program or in a folder near it.

use std::{
    env,
    path::{Path, PathBuf},
};

use tokio::process::Command;

const NAME: &str = "distlock";

/// Returns the program on this machine.
pub(crate) fn find() -> Option<PathBuf> {
    let this = env::current_exe().ok()?;
    if this.file_stem().is_some_and(|name| name == NAME) {
        return Some(this);
    }
    // Test programs are one folder deeper.
    let folders = this.ancestors().skip(1).take(2);
    folders.map(|folder| folder.join(NAME)).find(|path| path.is_file())
}

/// The program on the store of a URL, which is not among its arguments: other users of the machine
/// would see a password.
pub(crate) fn on(program: &Path, url: &str) -> Command {
    let mut command = Command::new(program);
    command.env("DISTLOCK_STORE", url);
    command
}
