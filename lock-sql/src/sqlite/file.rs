//! Where the file is, and whether it can be shared there.

use std::{
    env,
    fs::{DirBuilder, OpenOptions},
    io,
    os::unix::fs::{DirBuilderExt, MetadataExt, OpenOptionsExt},
    path::{Path, PathBuf},
};

use lock_core::{Effect, Error, Result};
use rustix::fs::{Access, AtFlags, CWD, accessat};

/// File systems of the network by their magic numbers (statfs(2)): their locks and their shared memory do
/// not reach other machines, or not always.
const NETWORK: [(u32, &str); 12] = [
    (0x0000_6969, "NFS"),
    (0xff53_4d42, "CIFS"),
    (0xfe53_4d42, "SMB2"),
    (0x0000_517b, "SMB"),
    (0x6573_5546, "FUSE (sshfs and others)"),
    (0x0102_1997, "9P"),
    (0x00c3_6400, "Ceph"),
    (0x0bd0_0bd0, "Lustre"),
    (0x5346_414f, "AFS"),
    (0x7375_7245, "Coda"),
    (0x4750_4653, "GPFS"),
    (0x7461_636f, "OCFS2"),
];

/// Finds the file, and creates it if it is not there.
///
/// # Errors
///
/// [`Error::Denied`] if it cannot be created, or not be written, [`Error::Rejected`] on a network file system.
pub(super) fn resolve(path: Option<&Path>) -> Result<PathBuf> {
    let (path, mode) = match path {
        // Whoever may use the directory decides who may use the file: by the umask.
        Some(path) => (path.to_owned(), 0o666),
        None => (own()?, 0o600),
    };
    let path = std::path::absolute(&path).map_err(|error| denied(&path, error))?;
    create(&path, mode).map_err(|error| denied(&path, error))?;
    // Asked, not tried: closing a file ends SQLite's locks on it of this whole process. And SQLite itself
    // would open the file for reading.
    let both = Access::READ_OK | Access::WRITE_OK;
    accessat(CWD, &path, both, AtFlags::EACCESS).map_err(|error| denied(&path, error.into()))?;
    check(&path)?;
    Ok(path)
}

/// The same for each path of a file, and for no other file.
///
/// # Errors
///
/// [`Error::Denied`] if it cannot be seen.
pub(super) fn identity(path: &Path) -> Result<String> {
    let file = std::fs::metadata(path).map_err(|error| denied(path, error))?;
    Ok(format!("{}:{}", file.dev(), file.ino()))
}

/// The user's own file, in a directory that nobody else may enter.
fn own() -> Result<PathBuf> {
    let state = env::var_os("XDG_STATE_HOME").map(PathBuf::from).filter(|path| path.is_absolute());
    let state = state.or_else(|| {
        // Without $HOME, as under cron, this asks the user database.
        let home = env::home_dir().filter(|home| home.is_absolute())?;
        Some(home.join(".local/state"))
    });
    let Some(state) = state else {
        let why = "neither XDG_STATE_HOME nor HOME names a directory, and the user database has none: \
                   name a file, as in sqlite:/var/lib/locks.db";
        return Err(Error::InvalidUrl { url: "sqlite:".to_owned(), reason: why.to_owned() });
    };
    let directory = state.join("distlock");
    let made = DirBuilder::new().recursive(true).mode(0o700).create(&directory);
    made.map_err(|error| denied(&directory, error))?;
    Ok(directory.join("locks.db"))
}

/// SQLite's companion files get the rights of this one.
fn create(path: &Path, mode: u32) -> io::Result<()> {
    match OpenOptions::new().write(true).create_new(true).mode(mode).open(path) {
        Err(error) if error.kind() != io::ErrorKind::AlreadyExists => Err(error),
        _ => Ok(()),
    }
}

fn check(path: &Path) -> Result<()> {
    let found = rustix::fs::statfs(path).map_err(|error| denied(path, error.into()))?;
    // A magic number has 32 bits, whatever the type of the field.
    let magic = found.f_type as u32;
    match NETWORK.iter().find(|(network, _)| *network == magic) {
        None => Ok(()),
        Some((_, name)) => {
            let why = format!(
                "{} is on a network file system ({name}), where SQLite cannot keep machines apart: \
                 use a file of this machine, or a server",
                path.display()
            );
            let (store, op, effect) = ("sqlite", "connect", Effect::None);
            Err(Error::Rejected { store, op, effect, source: why.into() })
        }
    }
}

fn denied(path: &Path, error: io::Error) -> Error {
    let source = format!("{}: {error}", path.display()).into();
    Error::Denied { store: "sqlite", op: "connect", source }
}
