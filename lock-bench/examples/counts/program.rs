//! The program that runs under valgrind.

use std::{
    path::PathBuf,
    process::{Output, Stdio},
};

use lock_lab::Counters;
use tokio::process::Command;

use crate::{Failure, callgrind};

/// The variable with the store's URL, which may have a password.
const URL: &str = "DISTLOCK_COUNTS_URL";

/// The program `pairs`: optimized, and of as few crates as there can be. This one is neither.
pub struct Program(PathBuf);

impl Program {
    pub fn new(path: &str) -> Self {
        Self(path.into())
    }

    /// Returns the schemes of the stores that it has.
    pub async fn stores(&self) -> Result<Vec<String>, Failure> {
        let told = run(Command::new(&self.0)).await?;
        Ok(String::from_utf8_lossy(&told.stdout).lines().map(str::to_owned).collect())
    }

    /// Acquires and releases this many times, by this many tasks.
    pub async fn run(&self, url: &str, pairs: u64, tasks: u64) -> Result<Counters, Failure> {
        let folder = tempfile::tempdir()?;
        let out = folder.path().join("callgrind.out");
        let mut command = Command::new("valgrind");
        command.arg("--tool=callgrind").arg(format!("--callgrind-out-file={}", out.display()));
        command.arg(&self.0).args([pairs, tasks].map(|number| number.to_string())).env(URL, url);
        run(command).await?;
        callgrind::read(&out)
    }
}

async fn run(mut command: Command) -> Result<Output, Failure> {
    let program = command.as_std().get_program().to_string_lossy().into_owned();
    let ended = command.stdin(Stdio::null()).kill_on_drop(true).output().await;
    let ended = ended.map_err(|error| format!("{program}: {error} (./test installs valgrind)"))?;
    match ended.status.success() {
        true => Ok(ended),
        false => {
            let said = String::from_utf8_lossy(&ended.stderr);
            Err(format!("{program} ended with {}: {said}", ended.status).into())
        }
    }
}
