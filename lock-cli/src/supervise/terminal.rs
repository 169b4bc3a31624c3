//! The controlling terminal: it belongs to the command while the command runs.

use std::fs::File;

use nix::sys::signal::{SigSet, Signal};
use rustix::{
    process::{Pid, getpgrp},
    termios::{tcgetpgrp, tcsetpgrp},
};

/// The terminal that this process was started from.
pub(crate) struct Terminal(File);

impl Terminal {
    /// The controlling terminal, if there is one.
    pub(crate) fn of_this_process() -> Option<Self> {
        File::options().read(true).write(true).open("/dev/tty").ok().map(Self)
    }

    /// Gives it to a process group, if it is ours to give.
    pub(crate) fn hand_over(&self, group: Pid) {
        self.pass(getpgrp(), group);
    }

    /// Takes it back from the group, not from a shell that has taken it already; answers whether the
    /// group had it.
    pub(crate) fn take_back(&self, group: Pid) -> bool {
        self.pass(group, getpgrp())
    }

    /// A failure means that the terminal is gone.
    fn pass(&self, from: Pid, to: Pid) -> bool {
        if tcgetpgrp(&self.0) != Ok(from) {
            return false;
        }
        // Whoever is in the background and does not block this signal is stopped by it instead.
        let mut ttou = SigSet::empty();
        ttou.add(Signal::SIGTTOU);
        let _ = ttou.thread_block();
        let _ = tcsetpgrp(&self.0, to);
        let _ = ttou.thread_unblock();
        true
    }
}
