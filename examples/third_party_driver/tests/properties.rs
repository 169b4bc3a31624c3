//! The executable properties on a directory. Each client has its own symbolic link to it as its
//! network, and its own runtime as its process.

use std::{
    fs, io,
    os::unix::fs::symlink,
    path::{Path, PathBuf},
    process::ExitCode,
    sync::{
        Mutex,
        atomic::{AtomicU64, Ordering},
    },
    time::Duration,
};

use async_trait::async_trait;
use libtest_mimic::{Arguments, Trial};
use lock_core::{
    LockName, Locks,
    properties::{self, Check, Client, Failure, Harness, NotHere, Outcome},
};
use third_party_driver::Directory;
use tokio::runtime::{Builder, Runtime};

/// Longest time for a check.
const LIMIT: Duration = Duration::from_secs(120);

/// Checks of promises that this store does not make, or that this harness cannot try. They are
/// skipped. Every other check is kept.
const SKIPPED: &[&str] = &[
    // No queue, and no kind except the exclusive one.
    "conversions::",
    "detach::",
    "election::",
    "fairness::",
    "observers::",
    "once::",
    "permits::",
    "sharing::",
    "operators::a_revoked_waiter",
    "sets::a_set_of_both_kinds",
    "sets::a_shared_set_and_a_writer",
    "sets::a_shared_set_waits_for_a_writer",
    "sets::shared_sets_are_held_together",
    "timeouts::a_vain_wait_names_the_holder",
    "timeouts::since_when",
    // No server that restarts, and no lost answer.
    "loss::a_waiter_is_told_too",
    "loss::told_when_renewals_hang",
    "lost_answers::",
    "reconnect::while_",
    "sets::a_lost_answer_to_a_set",
    "sets::a_set_of_a_caller_that_left",
    "vain_waits::while_the_store_is_silent",
];

fn main() -> ExitCode {
    let mut arguments = Arguments::from_args();
    arguments.test_threads.get_or_insert(6);
    let checks = properties::all().iter().flat_map(|property| {
        property.checks.iter().map(|check| (format!("{}::{}", property.name, check.name), *check))
    });
    let trials = checks.map(|(name, check)| {
        let run = name.clone();
        Trial::test(name, move || Ok(play(&run, check).map_err(|failure| failure.to_string())?))
    });
    libtest_mimic::run(&arguments, trials.collect()).exit_code()
}

fn play(name: &str, check: Check) -> Result<(), Failure> {
    let runtime = runtime();
    let outcome = runtime.block_on(async {
        let shared = Shared::new()?;
        tokio::time::timeout(LIMIT, check.run(&shared)).await?
    })?;
    match (outcome, SKIPPED.iter().any(|skipped| name.starts_with(skipped))) {
        (Outcome::Kept, false) => Ok(()),
        (Outcome::Skipped(_), true) => Ok(()),
        (outcome, _) => Err(format!("{outcome:?}: the list of skipped checks is wrong").into()),
    }
}

fn runtime() -> Runtime {
    Builder::new_multi_thread().worker_threads(2).enable_all().build().expect("a runtime")
}

/// A directory that several clients share.
struct Shared {
    directory: tempfile::TempDir,
    clients: AtomicU64,
}

impl Shared {
    fn new() -> io::Result<Self> {
        let shared = Self { directory: tempfile::tempdir()?, clients: AtomicU64::new(0) };
        fs::create_dir(shared.root())?;
        Ok(shared)
    }

    fn root(&self) -> PathBuf {
        self.directory.path().join("locks")
    }
}

#[async_trait]
impl Harness for Shared {
    async fn client(&self) -> Result<Box<dyn Client>, Failure> {
        let n = self.clients.fetch_add(1, Ordering::Relaxed);
        let way = self.directory.path().join(format!("client-{n}"));
        symlink(self.root(), &way)?;
        let home = runtime();
        let locks = {
            let _there = home.enter();
            Locks::new(Directory::driver(&way))
        };
        Ok(Box::new(Process { locks, way, root: self.root(), home: Mutex::new(Some(home)) }))
    }

    fn ttl(&self) -> Duration {
        Duration::from_secs(2)
    }

    /// The name becomes a file's name. Each byte may need three characters there.
    fn longest_name(&self) -> usize {
        85
    }

    /// There is no server.
    async fn restart(&self) -> Result<(), Failure> {
        Ok(())
    }

    async fn delete(&self, name: &LockName) -> Result<(), Failure> {
        match fs::remove_dir_all(self.root().join(&*name.escaped())) {
            Err(error) if error.kind() != io::ErrorKind::NotFound => Err(error.into()),
            _ => Ok(()),
        }
    }

    async fn leftovers(&self) -> Result<Vec<String>, Failure> {
        let files = fs::read_dir(self.root())?.collect::<io::Result<Vec<_>>>()?;
        Ok(files.iter().map(|file| file.file_name().to_string_lossy().into_owned()).collect())
    }
}

/// A client, its process's path to the directory, and its runtime.
struct Process {
    locks: Locks,
    way: PathBuf,
    root: PathBuf,
    home: Mutex<Option<Runtime>>,
}

impl Process {
    /// Replaces the path with something else, in one step.
    fn lead(&self, make: impl FnOnce(&Path) -> io::Result<()>) -> Result<(), Failure> {
        let new = self.way.with_extension("new");
        make(&new)?;
        Ok(fs::rename(new, &self.way)?)
    }

    fn end(&self) {
        if let Some(home) = self.home.lock().expect("not poisoned").take() {
            home.shutdown_background();
        }
    }
}

#[async_trait]
impl Client for Process {
    fn locks(&self) -> &Locks {
        &self.locks
    }

    /// The path becomes a file, so nothing is reached through it.
    async fn cut(&self) -> Result<(), Failure> {
        self.lead(|new| fs::write(new, ""))
    }

    async fn cut_replies(&self) -> Result<(), Failure> {
        Err(NotHere("a file system does nothing without saying so".to_owned()).into())
    }

    async fn heal(&self) -> Result<(), Failure> {
        self.lead(|new| symlink(&self.root, new))
    }

    async fn crash(&self) -> Result<(), Failure> {
        self.end();
        Ok(())
    }
}

impl Drop for Process {
    fn drop(&mut self) {
        self.end();
    }
}
