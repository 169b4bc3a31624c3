//! Finding programs of servers and of clients.

use std::{
    env,
    path::{Path, PathBuf},
};

use rustix::fs::{Access, access};

use crate::LabError;

/// Debian's folder for some servers. Only root has it in `PATH`.
const SYSTEM: &str = "/usr/sbin";

/// Returns etcd's own command line client.
pub fn etcdctl() -> Result<PathBuf, LabError> {
    find(Path::new("etcdctl"), "apt-get install etcd-client")
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
