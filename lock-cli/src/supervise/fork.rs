//! Another process of this program, and a socket to it.

use std::{
    ffi::{CStr, OsString},
    io,
    os::unix::net::UnixStream,
};

use rustix::process::{Pid, setpgid};

/// The process in which a fork goes on, and its end of the socket. It has only this end, so each of
/// the two hears when the other one is gone.
pub(super) enum Side {
    /// The process that was there before, with the number of the new one.
    Parent(Pid, UnixStream),
    /// The new process.
    Child(UnixStream),
}

/// Starts a process of this program, in a group of its own, with the stdin of this one. No runtime
/// may have started.
pub(super) fn fork(role: &CStr, command: &[OsString]) -> io::Result<Side> {
    let (ours, theirs) = UnixStream::pair()?;
    let child = lock_fork::fork(role, command)?;
    // Both do this, as shells do: neither goes on before the group exists.
    let grouped = setpgid(child, child);
    match child {
        // It fails if the child has made its group and is the command already, or is gone.
        Some(child) => Ok(Side::Parent(child, ours)),
        None => {
            grouped?;
            Ok(Side::Child(theirs))
        }
    }
}
