//! One running server process.

use std::{
    ffi::OsString,
    fs::File,
    io,
    os::unix::process::CommandExt,
    path::Path,
    process::{Child, ChildStdin, Command, ExitStatus, Stdio},
};

use rustix::process::{Pid, Signal, kill_process, kill_process_group};

/// Becomes the server, and leaves a watcher in its process group.
///
/// The watcher reads a pipe whose other end only the lab's process has. It reads end-of-file when
/// that process dies, however it dies. (`PR_SET_PDEATHSIG` would fire when the *thread* that
/// started the server ends, which test runners do all the time.) It then kills the server first,
/// since a server that still writes would disturb the deletion, and the rest of the group last, with
/// itself.
const SCRIPT: &str = r#"
home=$1; shift
exec 3<&0 </dev/null
{ read -r _ <&3; kill -s KILL $$; rm -rf -- "$home"; kill -s KILL -- -$$; } &
exec 3<&-
exec "$@"
"#;

/// A server process with its watcher. Dropping it kills both and waits until the server is gone.
#[derive(Debug)]
pub(crate) struct Process {
    child: Child,
    /// Closing this makes the watcher delete the data, so it must outlive the watcher.
    _leash: Option<ChildStdin>,
}

impl Process {
    /// Starts `command` in the folder `home`, with its output in `log`.
    pub(crate) fn spawn(command: &[OsString], home: &Path, log: &File) -> io::Result<Self> {
        let mut child = Command::new("/bin/sh")
            .args(["-c", SCRIPT, "lock-lab"])
            .arg(home)
            .args(command)
            .current_dir(home)
            .stdin(Stdio::piped())
            .stdout(log.try_clone()?)
            .stderr(log.try_clone()?)
            .process_group(0)
            .spawn()?;
        // Taken out, because `Child::wait` would close it.
        let leash = child.stdin.take();
        Ok(Self { child, _leash: leash })
    }

    pub(crate) fn pid(&self) -> u32 {
        self.child.id()
    }

    /// Tells how the server ended, if it did.
    pub(crate) fn exited(&mut self) -> io::Result<Option<ExitStatus>> {
        self.child.try_wait()
    }

    /// Sends a signal to the server alone.
    ///
    /// Its pid cannot belong to a stranger by now: the watcher keeps the process group of that
    /// number in use.
    pub(crate) fn signal(&self, signal: Signal) {
        if let Err(error) = kill_process(Pid::from_child(&self.child), signal) {
            tracing::debug!(pid = self.pid(), %error, "signal not delivered");
        }
    }
}

impl Drop for Process {
    fn drop(&mut self) {
        // SIGKILL also ends a stopped process.
        let _ = kill_process_group(Pid::from_child(&self.child), Signal::KILL);
        let _ = self.child.wait();
    }
}
