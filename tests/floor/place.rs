//! A store, its clients, and its copy from an earlier moment.

use std::{
    fs,
    path::{Path, PathBuf},
    time::Duration,
};

use distlock::Locks;
use lock_lab::Backup;
use tempfile::TempDir;

use crate::support::{Store, connect, eventually};

pub struct Place {
    pub name: String,
    store: Store,
    pub clients: Vec<Locks>,
    backup: Option<Copied>,
}

/// A copy of a store.
enum Copied {
    Server(Backup),
    File(TempDir),
}

impl Place {
    pub async fn open(name: &str) -> Self {
        let store = Store::open(name).await;
        let mut place = Self { name: name.to_owned(), store, clients: Vec::new(), backup: None };
        place.connect().await;
        place
    }

    async fn connect(&mut self) {
        for _ in 0..2 {
            self.clients.push(connect(&self.store.url()).await);
        }
    }

    /// Closes all clients, which ends their holds.
    async fn disconnect(&mut self) {
        for client in self.clients.drain(..) {
            client.close().await.expect("the store confirms");
        }
        if let Store::File(folder) = &self.store {
            // The last connection that closes also removes the file's log, by name.
            eventually("the file is closed", async || !is_open(folder.path())).await;
        }
    }

    pub fn is_backed_up(&self) -> bool {
        self.backup.is_some()
    }

    pub async fn back_up(&mut self) {
        self.disconnect().await;
        self.backup = Some(match &self.store {
            Store::Server(server) => Copied::Server(server.back_up().await.expect("a backup")),
            Store::File(folder) => {
                let copy = tempfile::tempdir().expect("a folder");
                copy_files(folder.path(), copy.path());
                Copied::File(copy)
            }
            Store::Memory(_) => unreachable!("there is no backup of memory"),
        });
        self.connect().await;
    }

    /// Restores the backup. Returns whether there was one.
    pub async fn restore(&mut self) -> bool {
        let Some(backup) = self.backup.take() else { return false };
        self.disconnect().await;
        match (&self.store, &backup) {
            (Store::Server(server), Copied::Server(backup)) => {
                server.restore(backup).await.expect("it starts with the backup");
            }
            (Store::File(folder), Copied::File(copy)) => {
                files(folder.path()).iter().for_each(|file| fs::remove_file(file).unwrap());
                copy_files(copy.path(), folder.path());
            }
            _ => unreachable!("a backup is of the store"),
        }
        self.backup = Some(backup);
        self.connect().await;
        true
    }

    /// A TTL that all stores grant, long enough for a busy machine.
    pub const TTL: Duration = Duration::from_secs(8);
}

/// Whether this process has a file in this folder open.
fn is_open(folder: &Path) -> bool {
    let open = fs::read_dir("/proc/self/fd").expect("Linux");
    let at = |entry: std::io::Result<fs::DirEntry>| fs::read_link(entry.ok()?.path()).ok();
    open.filter_map(at).any(|path| path.starts_with(folder))
}

fn files(folder: &Path) -> Vec<PathBuf> {
    let entries = fs::read_dir(folder).expect("a folder");
    entries.map(|entry| entry.expect("a file").path()).collect()
}

fn copy_files(from: &Path, to: &Path) {
    for file in files(from) {
        fs::copy(&file, to.join(file.file_name().expect("a name"))).expect("a copy");
    }
}
