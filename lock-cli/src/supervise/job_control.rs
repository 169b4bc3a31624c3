//! Job control: which group has the terminal, and which processes stop together.

use std::{fs, mem::replace};

use rustix::process::{
    Pid, Signal, getpid, kill_current_process_group, kill_process, kill_process_group,
};

use super::{family, terminal::Terminal};
use crate::{
    exit::say,
    signals::{bit, mask},
};

/// Does a shell's work for one command in a group of its own.
#[derive(Default)]
pub(crate) struct JobControl {
    terminal: Option<Terminal>,
    group: Option<Pid>,
    /// Whether the command gets the terminal as soon as the group of this process has it.
    wanted: bool,
    /// Whether the command ever had the terminal.
    handed: bool,
    /// Whether the command was asked to end, because it will never have the terminal.
    asked: bool,
    /// Whether the command has stopped, or was sent SIGTSTP, and was not continued since.
    stops: bool,
}

impl JobControl {
    pub(crate) fn of_this_process() -> Self {
        Self { terminal: Terminal::of_this_process(), ..Self::default() }
    }

    /// The command is about to begin. It gets the terminal at once if no other process uses it:
    /// some programs, such as `top`, cannot ask for it.
    pub(crate) fn started(&mut self, group: Pid) {
        self.group = Some(group);
        self.wanted = self.terminal.as_ref().is_some_and(Terminal::is_for_us_alone);
        self.hand_over();
    }

    /// Whether keys may have gone to the command, and not to this process.
    pub(crate) fn has_handed_over(&self) -> bool {
        self.handed
    }

    /// The command's group, once it is known.
    pub(crate) fn group(&self) -> Option<Pid> {
        self.group
    }

    /// Ctrl-z was pressed in the group of this process.
    pub(crate) fn stop(&mut self) {
        match self.group {
            Some(_) => {
                self.stops = true;
                self.send(Signal::TSTP);
            }
            None => stop_alone(),
        }
    }

    /// The command has stopped. This process stops too if a shell notices it, until the shell
    /// continues it.
    pub(crate) fn stopped(&mut self, signal: Signal) {
        let Some(state) = self.group.map(State::of).filter(|state| !state.goes_on) else { return };
        self.stops = true;
        let wants = matches!(signal, Signal::TTIN | Signal::TTOU);
        let ours = self.terminal.as_ref().is_some_and(Terminal::is_ours);
        if self.take_back() {
            self.wanted = true;
            let _ = kill_current_process_group(Signal::TTOU);
            self.go_on_after(signal);
        } else if wants && ours && !state.hears_a_stop {
            self.wanted = true;
            self.go_on();
        } else if ours || state.hears_a_stop || signal == Signal::TSTP && self.terminal.is_some() {
            // The other processes of this group have received the key as well.
            stop_alone();
            self.go_on_after(signal);
        } else if wants {
            self.wait_for_the_terminal(signal);
        }
    }

    /// The shell has continued this process, or there is no shell. Without a shell, a key has no
    /// effect, but SIGSTOP has.
    fn go_on_after(&mut self, signal: Signal) {
        if signal != Signal::STOP {
            self.go_on();
        }
    }

    /// Stops in the background, as the terminal stops a whole group. If no shell would continue it,
    /// asks the command to end, once. The kernel sends SIGHUP to such groups, which `nohup` has
    /// ignored.
    fn wait_for_the_terminal(&mut self, signal: Signal) {
        self.wanted = true;
        if !family::is_orphaned() {
            let _ = kill_current_process_group(signal);
        } else if !replace(&mut self.asked, true) {
            say(
                "the command wants the terminal, which no shell can give to it: it is asked to end",
            );
            self.send(Signal::TERM);
            self.send(Signal::CONT);
        }
    }

    /// SIGCONT has come. If this process stopped with the command, it has continued the command
    /// before it handles the signal. By that time, the next ctrl-z may have stopped the command
    /// again.
    pub(crate) fn continued(&mut self) {
        if self.stops {
            self.go_on();
        } else {
            self.hand_over();
        }
    }

    /// Continues the command, with the terminal if it wanted it.
    fn go_on(&mut self) {
        self.stops = false;
        self.hand_over();
        // At once: a ctrl-z in between is lost.
        self.send(Signal::CONT);
    }

    fn hand_over(&mut self) {
        if let (true, Some(group), Some(terminal)) = (self.wanted, self.group, &self.terminal)
            && terminal.hand_over(group)
        {
            (self.wanted, self.handed) = (false, true);
        }
    }

    /// Takes the terminal back after the end of the command, with all groups that it may have given
    /// the terminal to.
    pub(crate) fn reclaim(&self) {
        if let (true, Some(terminal), Some(group)) = (self.handed, &self.terminal, self.group) {
            terminal.reclaim(group);
        }
    }

    /// Takes the terminal back. Returns whether the command had it.
    fn take_back(&self) -> bool {
        match (&self.terminal, self.group) {
            (Some(terminal), Some(group)) => terminal.take_back(group),
            _ => false,
        }
    }

    /// Sends a signal, but not through the supervisor: these signals undo each other, and must not
    /// overtake each other.
    fn send(&self, signal: Signal) {
        if let Some(group) = self.group {
            let _ = kill_process_group(group, signal);
        }
    }
}

/// Stops this process if a shell would continue it. SIGTSTP would not stop a process that listens
/// for it.
pub(crate) fn stop_alone() {
    let _ = kill_process(getpid(), Signal::TTOU);
}

/// The state of the command when its stop is reported.
struct State {
    goes_on: bool,
    /// Whether it was asked to stop when it had stopped already.
    hears_a_stop: bool,
}

impl State {
    fn of(command: Pid) -> Self {
        let path = format!("/proc/{}/status", command.as_raw_pid());
        Self::parse(&fs::read_to_string(path).unwrap_or_default())
    }

    fn parse(status: &str) -> Self {
        let pending = mask(status, "SigPnd:") | mask(status, "ShdPnd:");
        let state = status.lines().find_map(|line| line.strip_prefix("State:"));
        Self {
            goes_on: state.is_some_and(|state| !state.trim_start().starts_with('T')),
            hears_a_stop: pending & bit(Signal::TSTP) != 0,
        }
    }
}

#[cfg(test)]
mod tests {
    use std::{os::unix::process::CommandExt, process::Command};

    use rustix::process::{WaitOptions, waitpid};

    use super::*;

    #[test]
    fn an_unreported_stop_outlives_a_late_sigcont() {
        let mut command = Command::new("sleep").arg("1000").process_group(0).spawn().unwrap();
        let group = Pid::from_child(&command);
        let mut jobs = JobControl { group: Some(group), ..JobControl::default() };
        kill_process(group, Signal::STOP).unwrap();
        let stop = waitpid(Some(group), WaitOptions::UNTRACED).unwrap().unwrap().1;
        assert!(stop.stopped());
        jobs.continued();
        assert!(!State::of(group).goes_on, "a signal of an earlier stop has undone this one");
        jobs.stopped(Signal::STOP);
        jobs.continued();
        assert!(State::of(group).goes_on);
        command.kill().unwrap();
        command.wait().unwrap();
    }

    #[test]
    fn a_key_is_pending_while_the_command_is_stopped() {
        let state = State::parse("State:\tT (stopped)\nSigPnd:\t0\nShdPnd:\t0000000000080000\n");
        assert!(!state.goes_on && state.hears_a_stop);
        let state = State::parse("State:\tS (sleeping)\nSigPnd:\t0\nShdPnd:\t0000000000100000\n");
        assert!(state.goes_on && !state.hears_a_stop);
        assert!(!State::parse("").goes_on);
    }
}
