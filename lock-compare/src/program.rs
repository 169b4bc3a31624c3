//! The program `distlock`, if it is this program or in a folder near it.

use std::{
    env,
    path::{Path, PathBuf},
    process::Stdio,
    time::Duration,
};

use rustix::process::{Pid, Signal, kill_process};
use tokio::process::{Child, Command};

use crate::Failure;

const NAME: &str = "distlock";

/// Returns the program on this machine.
pub(crate) fn find() -> Option<PathBuf> {
    let this = env::current_exe().ok()?;
    if this.file_stem().is_some_and(|name| name == NAME) {
        return Some(this);
    }
    // Test programs are one folder deeper.
    let folders = this.ancestors().skip(1).take(2);
    folders.map(|folder| folder.join(NAME)).find(|path| path.is_file())
}

/// A run of `distlock run NAME`. Its command does nothing until it is ended.
pub(crate) struct Running(Child);

impl Running {
    /// Starts it. The URL is not on its command line, because it may contain a password.
    pub(crate) fn start(
        program: &Path,
        url: &str,
        name: &str,
        ttl: Duration,
    ) -> Result<Self, Failure> {
        let mut command = Command::new(program);
        command
            .env("DISTLOCK_STORE", url)
            .args(["run", name, "--ttl"])
            .arg(format!("{}ms", ttl.as_millis()))
            .args(["--", "sleep", "600"])
            .stdin(Stdio::null())
            .stdout(Stdio::null())
            .stderr(Stdio::null());
        Ok(Self(command.spawn()?))
    }

    pub(crate) async fn ended(&mut self) -> Result<(), Failure> {
        self.0.wait().await?;
        Ok(())
    }

    pub(crate) fn signal(&self, signal: Signal) -> Result<(), Failure> {
        let pid = self.0.id().and_then(|id| Pid::from_raw(id.cast_signed()));
        Ok(kill_process(pid.ok_or("the program has ended already")?, signal)?)
    }
}
