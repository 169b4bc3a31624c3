//! The controlling terminal. The command has it from the start if no other process uses it.
//! Otherwise it stays with the group of this process until the command wants it: a pager in the
//! group may read from it, or a script may wait for ctrl-c. A process that uses the terminal from
//! outside its foreground group is stopped.

use std::{
    fs::File,
    io::{IsTerminal, stderr, stdin, stdout},
};

use nix::sys::signal::{SigSet, Signal};
use rustix::{
    io::Errno,
    process::{Pid, getpid, test_kill_process_group},
    termios::{tcgetpgrp, tcsetpgrp},
};

use super::family;

/// The terminal that this process was started from.
pub(crate) struct Terminal {
    file: File,
    /// The group of this process.
    ours: Pid,
}

impl Terminal {
    /// The controlling terminal, if there is one, and it can be passed back and forth.
    pub(crate) fn of_this_process() -> Option<Self> {
        let file = File::options().read(true).write(true).open("/dev/tty").ok()?;
        Some(Self { file, ours: family::our_group()? })
    }

    /// Whether it belongs to the group of this process.
    pub(crate) fn is_ours(&self) -> bool {
        tcgetpgrp(&self.file) == Ok(self.ours)
    }

    /// Whether no other process uses it. In a pipeline, this process has no terminal at one end. In
    /// a script, it is not the first process of its group.
    pub(crate) fn is_for_us_alone(&self) -> bool {
        self.ours == getpid()
            && stdin().is_terminal()
            && stdout().is_terminal()
            && stderr().is_terminal()
    }

    /// Gives it to a process group, if the group of this process has it. Returns whether it had.
    pub(crate) fn hand_over(&self, group: Pid) -> bool {
        self.pass(self.ours, group)
    }

    /// Takes it back from the group, but not from a shell that has taken it already. Returns
    /// whether the group had it.
    pub(crate) fn take_back(&self, group: Pid) -> bool {
        self.pass(group, self.ours)
    }

    /// Takes it back from the group, or from a group without members.
    pub(crate) fn reclaim(&self, group: Pid) {
        let Ok(owner) = tcgetpgrp(&self.file) else { return };
        if owner == group || test_kill_process_group(owner) == Err(Errno::SRCH) {
            self.pass(owner, self.ours);
        }
    }

    /// Returns whether `from` had it. A failure to pass it means that the terminal is gone.
    fn pass(&self, from: Pid, to: Pid) -> bool {
        if tcgetpgrp(&self.file) != Ok(from) {
            return false;
        }
        // In the background, this signal stops a process that does not block it.
        let mut ttou = SigSet::empty();
        ttou.add(Signal::SIGTTOU);
        let _ = ttou.thread_block();
        let _ = tcsetpgrp(&self.file, to);
        let _ = ttou.thread_unblock();
        true
    }
}
