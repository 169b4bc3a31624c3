//! Copies of a server's disk.

use std::{
    fs, io,
    path::Path,
    process::{Command, Stdio},
};

use tempfile::TempDir;

use crate::{LabError, Server};

/// A copy of a server's data. A drop deletes it.
#[derive(Debug)]
pub struct Backup(TempDir);

impl Backup {
    /// Its folder: a test may change what is [restored](Server::restore).
    pub fn folder(&self) -> &Path {
        self.0.path()
    }
}

impl Server {
    /// Kills the server, copies its data and starts it again. The copy has all confirmed writes
    /// that survive a kill -9 on this server.
    pub async fn back_up(&self) -> Result<Backup, LabError> {
        self.kill();
        let backup = tempfile::tempdir().and_then(|copy| {
            copy_into(self.home(), copy.path())?;
            Ok(Backup(copy))
        });
        self.restart().await?;
        backup.map_err(LabError::io("copying a server's data"))
    }

    /// Kills the server, replaces its data with the backup, and starts it again. The log comes from
    /// the backup, too.
    pub async fn restore(&self, backup: &Backup) -> Result<(), LabError> {
        self.kill();
        let restored = empty(self.home()).and_then(|()| copy_into(backup.0.path(), self.home()));
        restored.map_err(LabError::io("restoring a server's data"))?;
        self.restart().await
    }
}

fn empty(folder: &Path) -> io::Result<()> {
    for entry in fs::read_dir(folder)? {
        let entry = entry?;
        match entry.file_type()?.is_dir() {
            true => fs::remove_dir_all(entry.path())?,
            false => fs::remove_file(entry.path())?,
        }
    }
    Ok(())
}

/// Copies with owners and permissions, which the standard library does not copy.
fn copy_into(from: &Path, to: &Path) -> io::Result<()> {
    let mut copy = Command::new("cp");
    copy.arg("-a").arg(from.join(".")).arg(to).stdin(Stdio::null());
    let done = copy.output()?;
    match done.status.success() {
        true => Ok(()),
        false => Err(io::Error::other(String::from_utf8_lossy(&done.stderr).into_owned())),
    }
}
