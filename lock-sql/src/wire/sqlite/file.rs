//! Where the file is, its identity, and that of its log.

use std::{
    env,
    fmt::Display,
    fs::{self, DirBuilder, OpenOptions},
    io,
    os::unix::fs::{DirBuilderExt, MetadataExt, OpenOptionsExt},
    path::{Path, PathBuf},
};

use lock_core::{Error, Result, keep::errors};
use rustix::fs::{Access, AtFlags, CWD, accessat};

use super::shared;

/// The ends of the names of SQLite's log, and of the index of it.
const LOG: &str = "-wal";
const INDEX: &str = "-shm";

/// The place of a file. It stays the same when the environment changes.
#[derive(Debug)]
pub(super) struct Location {
    pub(super) path: PathBuf,
    /// Whether it is the default file, in a directory that no other user may enter.
    pub(super) is_default: bool,
}

impl Location {
    /// Creates nothing yet.
    pub(super) fn of(path: Option<&Path>) -> Result<Self> {
        let (path, is_default) = match path {
            Some(path) => (path.to_owned(), false),
            None => (default_path()?, true),
        };
        let path = std::path::absolute(&path).map_err(|error| denied(&path, error))?;
        Ok(Self { path, is_default })
    }

    /// Refuses a pool's database that is not a file.
    pub(super) fn check_is_there(&self) -> Result<()> {
        if self.path.is_file() {
            return Ok(());
        }
        let allowed = "a file that is there: it is none yet, or in memory, and locks need a file that \
                       all processes open";
        Err(errors::invalid("database of the pool", self.path.display(), allowed))
    }

    /// Finds the file, and creates it if it is not there. Returns its identity.
    pub(super) fn make(&self) -> Result<String> {
        let path = &self.path;
        if path.is_dir() {
            return Err(no_file(path, "is a directory; name a file in it"));
        }
        self.create().map_err(|error| not_made(path, error))?;
        // Asks instead of opening the file: closing a file ends SQLite's locks on it of this whole
        // process. And SQLite itself would open a file without the right to write for reading
        // only.
        let both = Access::READ_OK | Access::WRITE_OK;
        accessat(CWD, path, both, AtFlags::EACCESS).map_err(|error| denied(path, error.into()))?;
        let refusal = shared::refusal(path).map_err(|error| denied(path, error))?;
        refusal.map_or_else(|| self.identity(), Err)
    }

    /// Creates the file. SQLite's companion files get its rights.
    fn create(&self) -> io::Result<()> {
        if let Some(directory) = self.path.parent().filter(|_| self.is_default) {
            DirBuilder::new().recursive(true).mode(0o700).create(directory)?;
        }
        // For a named file, the directory and the umask decide which users may use it.
        let mode = if self.is_default { 0o600 } else { 0o666 };
        match OpenOptions::new().write(true).create_new(true).mode(mode).open(&self.path) {
            Err(error) if error.kind() != io::ErrorKind::AlreadyExists => Err(error),
            _ => Ok(()),
        }
    }

    /// The identity of the file that is there now: the same for each path to it. No other file has
    /// it while the file is open.
    pub(super) fn identity(&self) -> Result<String> {
        let file = fs::metadata(&self.path).map_err(|error| denied(&self.path, error))?;
        Ok(format!("{}:{}", file.dev(), file.ino()))
    }

    /// The real path: the same for each symbolic link to it, whichever file is there.
    pub(super) fn real(&self) -> Result<String> {
        let real = fs::canonicalize(&self.path).map_err(|error| denied(&self.path, error))?;
        Ok(real.display().to_string())
    }
}

/// The identity of SQLite's log and of its index; `None` if one of them is not there. No other file
/// has it while the log is open.
pub(super) fn log(real: &str) -> Option<[u64; 2]> {
    let number = |end| fs::metadata(format!("{real}{end}")).ok().map(|file| file.ino());
    Some([number(LOG)?, number(INDEX)?])
}

/// Whether this process has a file open with a log that is not there any more. A further connection
/// would use its index for another log.
pub(super) fn has_former_log(real: &str) -> bool {
    let Ok(open) = fs::read_dir("/proc/self/fd") else { return false };
    let open: Vec<_> = open.filter_map(|link| fs::read_link(link.ok()?.path()).ok()).collect();
    let has = |name: &str| open.iter().any(|target| target.as_os_str() == name);
    let is_former = |end| has(&format!("{real}{end} (deleted)")) && !has(&format!("{real}{end}"));
    has(real) && (is_former(LOG) || is_former(INDEX))
}

fn default_path() -> Result<PathBuf> {
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
    Ok(state.join("distlock/locks.db"))
}

fn not_made(path: &Path, error: io::Error) -> Error {
    let missing = path.parent().filter(|directory| !directory.exists());
    let there = path.ancestors().skip(1).find(|above| above.exists());
    match (there.filter(|above| !above.is_dir()), missing) {
        (Some(file), _) => {
            no_file(path, format_args!("{} is no directory; name a file elsewhere", file.display()))
        }
        (None, Some(missing)) if error.kind() == io::ErrorKind::NotFound => {
            let missing = missing.display();
            no_file(
                path,
                format_args!("there is no directory {missing}; make it, or name a file elsewhere"),
            )
        }
        _ => denied(path, error),
    }
}

/// The error for a path where there can be no file.
fn no_file(path: &Path, why: impl Display) -> Error {
    errors::misconfigured("sqlite", "connect", format!("{}: {why}", path.display()))
}

fn denied(path: &Path, error: io::Error) -> Error {
    let text = format!("{}: {error}", path.display());
    errors::denied("sqlite", "connect", errors::reworded(text, error))
}
