//! A driver outside the workspace: locks in a directory that the processes of one machine share
//! (Linux).
//!
//! A lock is a directory `ROOT/<name>` with one file, `<attempt>.<end>`: the end of the hold in ms
//! since the machine's boot. An attempt makes `ROOT/~<attempt>` with its file and renames it. The
//! rename does not replace a directory that contains something. A renewal renames the file. An
//! attempt removes a file after its end has passed. The file system lets only one of two
//! conflicting steps succeed.
//!
//! There is no order: a waiter looks every 25 to 50 ms. A crashed holder leaves its directory. The
//! first look after its end clears it. A leftover `~<attempt>` has no effect. Two clients may hold
//! a lock after a file is removed by hand, or by [`Locks::revoke`](lock_core::Locks::revoke), until
//! the next renewal of the first one: an eighth of its TTL. The directory is for one machine.

use std::io::{Error, ErrorKind, Result};
use std::{fs, path::PathBuf, time::Duration, time::SystemTime, time::UNIX_EPOCH};

use async_trait::async_trait;
use lock_core::{
    Clock, Entry, Fencing, FencingToken, Guarantees, Holder, Instant, LockName, Overlap, Request,
    polling::{PolledStore, Polling},
};
use uuid::Uuid;

const LONGEST: Duration = Duration::from_secs(3600);

/// A directory of locks.
#[derive(Debug)]
pub struct Directory {
    root: PathBuf,
    guarantees: Guarantees,
}

impl Directory {
    /// A driver for the directory `root`, which must exist.
    pub fn driver(root: impl Into<PathBuf>) -> Polling<Self> {
        let mut guarantees = Guarantees::least("directory");
        guarantees.overlaps = vec![Overlap::Revoked, Overlap::Deleted];
        guarantees.fencing = Fencing::BestEffort("unless the machine's wall clock is set back");
        guarantees.ttl = Duration::from_millis(500)..=LONGEST;
        guarantees.expiry_slack = Duration::from_millis(100);
        Polling::new(Self { root: root.into(), guarantees })
    }

    fn lock(&self, name: &LockName) -> PathBuf {
        self.root.join(&*name.escaped())
    }

    /// The lock's file, its attempt, and the time until its end. Blocks for microseconds.
    fn file(&self, name: &LockName) -> Result<Option<(PathBuf, Uuid, Option<Duration>)>> {
        let mut files = match fs::read_dir(self.lock(name)) {
            Err(error) if error.kind() == ErrorKind::NotFound => return Ok(None),
            files => files?,
        };
        let Some(file) = files.next().transpose()? else { return Ok(None) };
        let (path, name) = (file.path(), file.file_name().into_string().unwrap_or_default());
        let parts =
            name.split_once('.').and_then(|(a, e)| Some((a.parse().ok()?, e.parse().ok()?)));
        let foreign = || Error::new(ErrorKind::InvalidData, format!("{path:?} is no lock's"));
        let (attempt, end) = parts.ok_or_else(foreign)?;
        let left = Duration::from_millis(end).saturating_sub(since_boot());
        // A more distant end belongs to an earlier boot, whose processes are gone.
        Ok(Some((path, attempt, Some(left).filter(|left| !left.is_zero() && *left < LONGEST * 2))))
    }
}

#[async_trait]
impl PolledStore for Directory {
    fn guarantees(&self) -> &Guarantees {
        &self.guarantees
    }

    async fn take(&self, request: &Request, attempt: Uuid) -> Result<Option<FencingToken>> {
        if let Some((file, owner, left)) = self.file(&request.name)? {
            if left.is_some() && owner != attempt {
                return Ok(None);
            }
            found(fs::remove_file(file))?;
        }
        let new = self.root.join(format!("~{attempt}"));
        found(fs::remove_dir_all(&new))?;
        fs::create_dir(&new)?;
        fs::write(new.join(file_name(attempt, request)), &*request.holder)?;
        if let Err(error) = fs::rename(&new, self.lock(&request.name)) {
            found(fs::remove_dir_all(&new))?;
            let taken = [ErrorKind::AlreadyExists, ErrorKind::DirectoryNotEmpty];
            return if taken.contains(&error.kind()) { Ok(None) } else { Err(error) };
        }
        // Read after the grant, so that no later holder reads an earlier time.
        #[allow(clippy::disallowed_methods, reason = "a token, and no deadline")]
        let now = SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default();
        Ok(Some(FencingToken::new(now.as_nanos() as u64)))
    }

    async fn renew(&self, request: &Request, attempt: Uuid) -> Result<bool> {
        let Some((file, owner, _)) = self.file(&request.name)? else { return Ok(false) };
        let renewed = file.with_file_name(file_name(attempt, request));
        Ok(owner == attempt && found(fs::rename(file, renewed))?)
    }

    async fn remove(&self, name: &LockName, attempt: Uuid) -> Result<bool> {
        while let Some((file, owner, _)) = self.file(name)?
            && owner == attempt
        {
            // Not found if its holder has renewed it meanwhile.
            if found(fs::remove_file(file))? {
                // Fails if the next holder is in already.
                let _ = fs::remove_dir(self.lock(name));
                return Ok(true);
            }
        }
        found(fs::remove_dir_all(self.root.join(format!("~{attempt}")))).map(|_| false)
    }

    async fn holder(&self, name: &LockName) -> Result<Option<Entry>> {
        let Some((file, attempt, Some(left))) = self.file(name)? else { return Ok(None) };
        let holder = Holder::new(fs::read_to_string(file).ok(), None);
        Ok(Some(Entry::new(Some(attempt), holder).holding().with_ttl_left(left)))
    }

    async fn names(&self, prefix: &str) -> Result<Vec<LockName>> {
        let mut names = Vec::new();
        for lock in fs::read_dir(&self.root)? {
            let name = lock?.file_name().to_str().and_then(LockName::from_escaped);
            if let Some(name) = name.filter(|name| name.as_str().starts_with(prefix))
                && let Ok(Some(_)) = self.holder(&name).await
            {
                names.push(name);
            }
        }
        names.sort();
        Ok(names)
    }
}

fn since_boot() -> Duration {
    Clock::Boot.now().since(Instant::default())
}

fn file_name(attempt: Uuid, request: &Request) -> String {
    format!("{attempt}.{}", (since_boot() + request.ttl).as_millis() + 1)
}

/// Whether a step found its file or directory.
fn found(step: Result<()>) -> Result<bool> {
    match step {
        Err(error) if error.kind() == ErrorKind::NotFound => Ok(false),
        step => step.map(|()| true),
    }
}
