//! The controlling terminal. The command has it from the start where nobody beside us uses it. Else it stays
//! with the group of this process, in which a pager may read from it or a script wait for ctrl-c, until the
//! command wants it: whoever uses the terminal from outside its foreground group is stopped.

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

    /// Whether nobody beside us uses it: in a pipeline we have no terminal at one end, and of a script we are
    /// not the first process.
    pub(crate) fn is_for_us_alone(&self) -> bool {
        self.ours == getpid()
            && stdin().is_terminal()
            && stdout().is_terminal()
            && stderr().is_terminal()
    }

    /// Gives it to a process group, if it is ours to give; answers whether it was.
    pub(crate) fn hand_over(&self, group: Pid) -> bool {
        self.pass(self.ours, group)
    }

    /// Takes it back from the group, not from a shell that has taken it already; answers whether the
    /// group had it.
    pub(crate) fn take_back(&self, group: Pid) -> bool {
        self.pass(group, self.ours)
    }

    /// Takes it back from the group, or from one in which nobody is left.
    pub(crate) fn reclaim(&self, group: Pid) {
        let Ok(owner) = tcgetpgrp(&self.file) else { return };
        if owner == group || test_kill_process_group(owner) == Err(Errno::SRCH) {
            self.pass(owner, self.ours);
        }
    }

    /// A failure means that the terminal is gone.
    fn pass(&self, from: Pid, to: Pid) -> bool {
        if tcgetpgrp(&self.file) != Ok(from) {
            return false;
        }
        // Whoever is in the background and does not block this signal is stopped by it instead.
        let mut ttou = SigSet::empty();
        ttou.add(Signal::SIGTTOU);
        let _ = ttou.thread_block();
        let _ = tcsetpgrp(&self.file, to);
        let _ = ttou.thread_unblock();
        true
    }
}
