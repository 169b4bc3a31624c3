//! The primary that a Redis follows.

use std::{
    fs, io,
    net::SocketAddr,
    path::{Path, PathBuf},
};

use crate::LabError;

/// A replica links at once, and notices within seconds that its primary is silent.
pub(super) const SETTINGS: [&str; 6] =
    ["--repl-diskless-sync-delay", "0", "--repl-ping-replica-period", "1", "--repl-timeout", "5"];

/// The role of a Redis at its first start. Sentinels change it later.
#[derive(Clone, Copy, Debug)]
pub(super) enum Role {
    Primary,
    ReplicaOf(SocketAddr),
}

impl Role {
    /// Returns the configuration file, and writes it before the first start. From then on, it
    /// belongs to Redis, which keeps a sentinel's orders there over each restart.
    pub(super) fn file(self, home: &Path) -> Result<PathBuf, LabError> {
        let file = home.join("redis.conf");
        let text = match self {
            Self::Primary => String::new(),
            Self::ReplicaOf(addr) => format!("replicaof {} {}\n", addr.ip(), addr.port()),
        };
        write_once(&file, &text).map_err(LabError::io("writing redis.conf"))?;
        Ok(file)
    }
}

/// Writes a file that is not there yet.
pub(super) fn write_once(file: &Path, text: &str) -> io::Result<()> {
    if file.exists() { Ok(()) } else { fs::write(file, text) }
}
