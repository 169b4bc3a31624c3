//! Finding programs of servers and of clients.

use std::{
    env,
    path::{Path, PathBuf},
    process::{Command, Stdio},
};

use rustix::fs::{Access, access};

use crate::LabError;

/// Debian's folder for some servers. Only root has it in `PATH`.
const SYSTEM: &str = "/usr/sbin";

/// Relative to the workspace's folder; `./test` makes it.
const PYTHON: &str = "target/python/bin/python3";
/// The environment variable that names another Python.
const PYTHON_CHOICE: &str = "DISTLOCK_TEST_PYTHON";

/// Returns etcd's own command line client.
pub fn etcdctl() -> Result<PathBuf, LabError> {
    find(Path::new("etcdctl"), "apt-get install etcd-client")
}

/// Returns a Python that has redis-py.
///
/// It is the one that the environment variable `DISTLOCK_TEST_PYTHON` names. Without the variable,
/// it is the one in `target/python` that `./test` makes, or else `python3` in `PATH`. The search
/// takes some 100 ms, because each Python is asked for the module.
pub fn python_with_redis() -> Result<PathBuf, LabError> {
    python("redis", "./test, or pip install redis==8.1.0")
}

/// Returns a Python that has kazoo, as [`python_with_redis`] does.
pub fn python_with_kazoo() -> Result<PathBuf, LabError> {
    python("kazoo", "./test, or pip install kazoo==2.11.0")
}

fn python(module: &str, install: &'static str) -> Result<PathBuf, LabError> {
    let own = || Path::new(env!("CARGO_MANIFEST_DIR")).with_file_name(PYTHON);
    match env::var_os(PYTHON_CHOICE) {
        Some(choice) => python_among(&[choice.into()], module, install),
        None => python_among(&[own(), "python3".into()], module, install),
    }
}

fn python_among(
    choices: &[PathBuf],
    module: &str,
    install: &'static str,
) -> Result<PathBuf, LabError> {
    choices
        .iter()
        .filter_map(|choice| find(choice, install).ok())
        .find(|python| has_module(python, module))
        .ok_or_else(|| LabError::Missing { binary: format!("python3 with {module}"), install })
}

/// Imports a part of the module, because a folder with the module's name would also do.
fn has_module(python: &Path, module: &str) -> bool {
    let mut command = Command::new(python);
    command.args(["-c", &format!("import {module}.client")]);
    command.stdin(Stdio::null()).stdout(Stdio::null()).stderr(Stdio::null());
    command.status().is_ok_and(|status| status.success())
}

/// Finds an executable: a bare name in `PATH`, a name with a slash as it is.
pub(crate) fn find(name: &Path, install: &'static str) -> Result<PathBuf, LabError> {
    let path = env::var_os("PATH").unwrap_or_default();
    let folders = env::split_paths(&path).chain([SYSTEM.into()]);
    let is_bare = name.components().count() == 1;
    let places = if is_bare { folders.map(|f| f.join(name)).collect() } else { vec![name.into()] };
    places
        .into_iter()
        .find(|place: &PathBuf| place.is_file() && access(place, Access::EXEC_OK).is_ok())
        .ok_or_else(|| LabError::Missing { binary: name.display().to_string(), install })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_python_without_the_module_is_none() {
        let error = python_among(&["/nowhere/python3".into(), "false".into()], "redis", "pip ..");
        let expected = "python3 with redis was not found; install it with: pip ..";
        assert_eq!(error.expect_err("neither is a python").to_string(), expected);
    }

    #[test]
    fn the_first_python_with_the_module_is_taken() {
        // Each Python has this module, and the module has the part.
        let found = python_among(&["false".into(), "python3".into()], "xmlrpc", "apt ..");
        assert!(found.expect("a python").ends_with("python3"));
    }
}
