//! A fork for the program `distlock`, with the only two lines of unsafe code in distlock.
//!
//! `distlock run` has two processes beside its own. A fork of what is loaded takes less time than
//! loading the program again. On other systems than Linux the crate is empty.

#![cfg(target_os = "linux")]

mod command_line;

use std::{
    ffi::{CStr, OsString},
    fs, io,
    os::unix::ffi::OsStrExt,
};

use nix::{
    sys::prctl::set_name,
    unistd::{self, ForkResult},
};
use rustix::process::Pid;

/// Starts a process that goes on from here, as this one does. Returns its number; `None` in the new
/// process. That one has all files of this one open, also those that are closed at an `exec`.
///
/// `ps -f` shows the new process as `distlock ROLE COMMAND`, as far as there is room, and `ps -e`
/// as `ROLE`. So `pkill distlock` signals the parent alone.
///
/// # Errors
///
/// If this process has more than one thread, or the system refuses another process.
#[expect(unsafe_code, reason = "a fork is safe only in a process of one thread")]
pub fn fork(role: &CStr, command: &[OsString]) -> io::Result<Option<Pid>> {
    let threads = fs::read_dir("/proc/self/task")?.count();
    if threads != 1 {
        let why = format!(
            "a fork needs a process of one thread, and this one has {threads}: a library that is \
             loaded into all programs (LD_PRELOAD) may have started the other one"
        );
        return Err(io::Error::other(why));
    }
    // SAFETY: Only the calling thread is in the new process. A lock that another thread held, as of
    // the allocator, would never be released there. There is no other thread: the kernel has just
    // listed this one alone, and only a thread of this process can start another one.
    let forked = unsafe { unistd::fork() }?;
    match forked {
        ForkResult::Parent { child } => Ok(Pid::from_raw(child.as_raw())),
        ForkResult::Child => {
            let words = [c"distlock", role].map(CStr::to_bytes).into_iter();
            let words: Vec<_> = words.chain(command.iter().map(|word| word.as_bytes())).collect();
            // Where the kernel refuses them, the parent's are shown.
            let _ = set_name(role);
            let _ = command_line::show(&words);
            Ok(None)
        }
    }
}

#[cfg(test)]
mod tests {
    use std::{sync::mpsc::channel, thread};

    use super::*;

    #[test]
    fn a_process_with_a_second_thread_does_not_fork() {
        let (end, ended) = channel::<()>();
        let second = thread::spawn(move || ended.recv());
        let refusal = fork(c"test", &[]).unwrap_err().to_string();
        let has_remedy = refusal.contains("LD_PRELOAD");
        assert!(refusal.contains("one thread") && has_remedy, "{refusal}");
        drop(end);
        assert!(second.join().unwrap().is_err());
    }
}
