//! Network namespaces without a name.

use std::{
    fs::File,
    io::{self, Write},
    os::fd::{AsFd, AsRawFd, OwnedFd},
    panic::resume_unwind,
    path::Path,
    process::{Command, Stdio},
    sync::Arc,
    thread,
};

use rustix::thread::{LinkNameSpaceType, UnshareFlags, move_into_link_name_space};

use crate::program;

/// A network namespace. It has no name: it lives as long as a process is in it or a handle is open.
/// So the kernel removes it at any end of this process.
#[derive(Clone, Debug)]
pub(crate) struct Namespace(Arc<OwnedFd>);

impl Namespace {
    /// Makes a namespace with nothing but a loopback device that is down.
    pub(super) fn new() -> io::Result<Self> {
        aside(|| {
            unshare_network()?;
            let handle = File::open("/proc/thread-self/ns/net")?;
            Ok(Self(Arc::new(handle.into())))
        })
    }

    /// Moves the calling thread into it, for good, with all threads and processes that it starts
    /// later.
    pub(super) fn enter(&self) -> io::Result<()> {
        let network = Some(LinkNameSpaceType::Network);
        Ok(move_into_link_name_space(self.0.as_fd(), network)?)
    }

    /// Does some work on a thread in the namespace.
    pub(crate) fn within<T: Send>(
        &self,
        work: impl FnOnce() -> io::Result<T> + Send,
    ) -> io::Result<T> {
        aside(|| self.enter().and_then(|()| work()))
    }

    /// Runs a program in the namespace with `input` on its standard input.
    pub(super) fn feed(&self, program: &'static str, args: &[&str], input: &str) -> io::Result<()> {
        let install = "apt-get install iproute2 iptables";
        let program = program::find(Path::new(program), install).map_err(io::Error::other)?;
        let mut command = Command::new(&program);
        command.args(args).stdin(Stdio::piped()).stdout(Stdio::null()).stderr(Stdio::piped());
        self.within(move || {
            let mut child = command.spawn()?;
            if let Some(mut stdin) = child.stdin.take() {
                // A program that ends early prints the reason.
                let _ = stdin.write_all(input.as_bytes());
            }
            let output = child.wait_with_output()?;
            let said = String::from_utf8_lossy(&output.stderr);
            let failed = || format!("{} failed: {}", program.display(), said.trim());
            if output.status.success() { Ok(()) } else { Err(io::Error::other(failed())) }
        })
    }

    /// Returns the file name for other processes of this user, while the namespace lives.
    pub(super) fn path(&self) -> String {
        format!("/proc/{}/fd/{}", std::process::id(), self.0.as_raw_fd())
    }
}

/// Runs work on a thread of its own, since a thread cannot leave a namespace.
fn aside<T: Send>(work: impl FnOnce() -> io::Result<T> + Send) -> io::Result<T> {
    thread::scope(|scope| match thread::Builder::new().spawn_scoped(scope, work)?.join() {
        Ok(result) => result,
        Err(panic) => resume_unwind(panic),
    })
}

/// The function is deprecated because one of its flags is unsafe, the one that separates file
/// descriptors.
#[expect(deprecated)]
fn unshare_network() -> io::Result<()> {
    Ok(rustix::thread::unshare(UnshareFlags::NEWNET)?)
}
