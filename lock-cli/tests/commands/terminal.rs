//! The display and the keys of a terminal: a shell on a pseudoterminal.

use std::{path::Path, process::Child, time::Duration};

use rustix::process::{Pid, Signal, kill_process};

use super::{pty::Pty, run::until};
use crate::place::Place;

const CTRL_C: &str = "\x03";
const CTRL_Z: &str = "\x1a";

/// A shell with job control. A drop kills it.
pub struct Terminal {
    pty: Pty,
    shell: Child,
}

impl Terminal {
    pub fn open(place: &Place) -> Self {
        let pty = Pty::open(150, 24);
        let program = Path::new(env!("CARGO_BIN_EXE_distlock"));
        let path = format!("{}:/usr/bin:/bin", program.parent().expect("a folder").display());
        // The tests may run where signals are ignored: under `nohup`, in the background of another
        // shell.
        let start = ["--default-signal", "setsid", "--ctty"];
        let shell = ["bash", "--norc", "--noprofile", "-i"];
        let mut shell = place.other("env", &[&start as &[&str], &shell].concat());
        shell
            .env("PATH", path)
            .env("TERM", "xterm")
            .env("HOME", place.path())
            .current_dir(place.path());
        shell.stdin(pty.other_side()).stdout(pty.other_side()).stderr(pty.other_side());
        let shell = shell.spawn().expect("a shell");
        Self { pty, shell }
    }

    pub fn press(&mut self, keys: &str) {
        self.pty.press(keys);
    }

    /// Reads until this is shown, and returns the text before it. The shell shows typed text, too.
    pub fn until(&mut self, text: &str) -> String {
        let ended = |shown| panic!("it ended before {text:?}: {shown}");
        self.pty.until(text).unwrap_or_else(ended)
    }

    /// Continues the stopped command. The shell shows its line.
    fn fg(&mut self) {
        self.press("fg\n");
        self.until("distlock run");
    }

    /// The exit code of the last command.
    fn code(&mut self) -> u8 {
        self.press("echo code=$?.\n");
        loop {
            self.until("code=");
            // Skips the typed text.
            if let Ok(code) = self.until(".").parse() {
                return code;
            }
        }
    }
}

impl Drop for Terminal {
    fn drop(&mut self) {
        let _ = self.shell.kill();
        let _ = self.shell.wait();
    }
}

struct Stat {
    is_stopped: bool,
    has_the_terminal: bool,
    parent: String,
}

fn stat(pid: &str) -> Stat {
    let stat = std::fs::read_to_string(format!("/proc/{}/stat", pid.trim())).expect("it lives");
    let (_, stat) = stat.rsplit_once(") ").expect("a name");
    let fields: Vec<_> = stat.split(' ').collect();
    let [state, parent, group, _, _, foreground, ..] = fields[..] else { panic!("fields: {stat}") };
    Stat {
        is_stopped: state == "T",
        has_the_terminal: group == foreground,
        parent: parent.to_owned(),
    }
}

/// One key may come too early, while the shell is still continuing the command.
fn stop_by_keys(terminal: &mut Terminal, holder: &str) {
    for _ in 0..1_000 {
        terminal.press(CTRL_Z);
        std::thread::sleep(Duration::from_millis(20));
        if stat(holder).is_stopped {
            return;
        }
    }
    panic!("it does not hear ctrl-z");
}

#[test]
fn ctrl_z_stops_the_command_and_fg_goes_on() {
    ctrl_z_and_fg("distlock run x --ttl 1h -- sh command");
}

#[test]
fn ctrl_z_stops_the_script_around_it() {
    ctrl_z_and_fg("sh -c 'distlock run x --ttl 1h -- sh command; exit $?'");
}

fn ctrl_z_and_fg(line: &str) {
    let place = Place::new();
    let mut terminal = Terminal::open(&place);
    let read = "read line < go; echo on$((1+1)); read line; echo got$line";
    let command = format!("mkfifo go; echo $$ > pid; echo ready$((1+1)); {read}; exec sleep 1000");
    std::fs::write(place.path().join("command"), command).unwrap();
    terminal.press(&format!("{line}\n"));
    terminal.until("ready2");
    let pid = std::fs::read_to_string(place.path().join("pid")).unwrap();
    let holder = stat(&stat(&pid).parent).parent;
    terminal.press(CTRL_Z);
    terminal.until("Stopped");
    terminal.until("distlock run");
    // The shell may have seen the script stop first.
    until("both stop", || stat(&pid).is_stopped && stat(&holder).is_stopped);
    assert!(place.is_busy("x"));
    terminal.fg();
    std::fs::write(place.path().join("go"), "\n").unwrap();
    terminal.until("on2");
    // A key that is pressed before the command has the terminal is lost, as in a shell.
    until("it reads", || !stat(&pid).is_stopped && stat(&pid).has_the_terminal);
    terminal.press(CTRL_Z);
    terminal.until("Stopped");
    terminal.until("distlock run");
    until("both stop", || stat(&pid).is_stopped && stat(&holder).is_stopped);
    terminal.fg();
    terminal.press("that\n");
    terminal.until("gotthat");
    terminal.press(CTRL_C);
    assert_eq!(terminal.code(), 130);
    assert!(!place.is_busy("x"));
}

#[test]
fn ctrl_z_works_again_after_ctrl_z_right_after_fg() {
    let place = Place::new();
    let mut terminal = Terminal::open(&place);
    let script = "echo $$ > pid; echo ready$((1+1)); exec sleep 1000";
    terminal.press(&format!("distlock run x --ttl 1h -- sh -c '{script}'\n"));
    terminal.until("ready2");
    let command = std::fs::read_to_string(place.path().join("pid")).unwrap();
    let holder = stat(&stat(&command).parent).parent;
    terminal.press(CTRL_Z);
    for _ in 0..10 {
        terminal.until("Stopped");
        terminal.until("bash-");
        terminal.fg();
        until("it goes on", || !stat(&holder).is_stopped);
        stop_by_keys(&mut terminal, &holder);
        assert!(stat(&command).is_stopped);
    }
    terminal.until("Stopped");
    terminal.fg();
    until("it goes on", || !stat(&holder).is_stopped);
    let holder = holder.parse().ok().and_then(Pid::from_raw).expect("a process id");
    kill_process(holder, Signal::TERM).unwrap();
    assert_eq!(terminal.code(), 143);
}

#[test]
fn ctrl_z_stops_a_holder_after_its_command() {
    let place = Place::new();
    let mut terminal = Terminal::open(&place);
    let script = "cut -d\" \" -f4 /proc/$PPID/stat > pid; echo ready$((1+1))";
    terminal.press(&format!("distlock run x --ttl 1h --at-least 1h -- sh -c '{script}'\n"));
    terminal.until("ready2");
    let holder = std::fs::read_to_string(place.path().join("pid")).unwrap();
    until("the command is over", || stat(&holder).has_the_terminal);
    stop_by_keys(&mut terminal, &holder);
    terminal.until("Stopped");
    terminal.until("distlock run");
    assert!(place.is_busy("x"));
    terminal.fg();
    until("it goes on", || !stat(&holder).is_stopped);
    terminal.press(CTRL_C);
    assert_eq!(terminal.code(), 0);
    assert!(!place.is_busy("x"));
}

#[test]
fn a_command_has_the_terminal_before_it_begins() {
    let place = Place::new();
    let mut terminal = Terminal::open(&place);
    let command = "set -- $(cat /proc/$$/stat); echo group $5 of $8.";
    std::fs::write(place.path().join("command"), command).unwrap();
    terminal.press("distlock run x -- sh command\n");
    terminal.until("group ");
    let groups = terminal.until(".");
    let (ours, foreground) = groups.split_once(" of ").unwrap();
    assert_eq!(ours, foreground);
    assert_eq!(terminal.code(), 0);
    // Ctrl-c also ends the list around it.
    terminal.press("distlock run x -- sh -c 'echo ready$((1+1)); exec sleep 1000'; echo went on\n");
    terminal.until("ready2");
    terminal.press(CTRL_C);
    terminal.press("echo code=$?.\n");
    let shown = terminal.until("code=130.");
    assert!(!shown.contains("went on"), "{shown}");
}

#[test]
fn a_command_that_stops_itself_shows_the_shell() {
    let place = Place::new();
    let mut terminal = Terminal::open(&place);
    terminal.press("distlock run x -- sh -c 'kill -STOP $$; echo on$((1+1))'\n");
    terminal.until("Stopped");
    terminal.until("bash-");
    terminal.press("fg\n");
    terminal.until("on2");
    assert_eq!(terminal.code(), 0);
}

#[test]
fn a_command_may_ignore_ctrl_z() {
    let place = Place::new();
    let mut terminal = Terminal::open(&place);
    let command =
        "trap '' TSTP; mkfifo go; echo ready$((1+1)); read x < go; read line; echo got$line";
    std::fs::write(place.path().join("command"), command).unwrap();
    // Within a script, the command has to ask for the terminal.
    terminal.press("sh -c 'trap \"\" TSTP; distlock run x -- sh command; exit $?'\n");
    terminal.until("ready2");
    terminal.press(CTRL_Z);
    terminal.until("^Z");
    std::fs::write(place.path().join("go"), "\n").unwrap();
    terminal.press("that\n");
    terminal.until("gotthat");
    assert_eq!(terminal.code(), 0);
}

#[test]
fn an_orphaned_command_that_wants_the_terminal_is_asked_to_end() {
    let place = Place::new();
    let mut terminal = Terminal::open(&place);
    let command = "read word < go; read line < /dev/tty";
    terminal.press(&format!("mkfifo go; (distlock run x -- sh -c '{command}' &)\n"));
    // The shell has the terminal again, and no shell watches the group.
    terminal.press("echo back$((1+1))\n");
    terminal.until("back2");
    std::fs::write(place.path().join("go"), "\n").unwrap();
    terminal.until("it is asked to end");
    assert_eq!(place.run(&["run", "x", "--wait", "1m", "true"]).0, Some(0));
}

#[test]
fn a_pager_beside_the_command_has_the_keys() {
    let place = Place::new();
    let mut terminal = Terminal::open(&place);
    let pager = "read line; read key < /dev/tty; echo shown$line$key";
    terminal.press(&format!(
        "distlock run x -- sh -c 'echo; echo > ready; exec sleep 1000' | sh -c '{pager}; cat'\n"
    ));
    terminal.press("that\n");
    terminal.until("shownthat");
    terminal.press(CTRL_C);
    assert_eq!(terminal.code(), 130);
    assert!(!place.is_busy("x"));
}

#[test]
fn a_command_in_the_background_waits_for_fg() {
    let place = Place::new();
    let mut terminal = Terminal::open(&place);
    terminal.press("distlock run x -- cat &\n");
    // Keys before the shell has read its line are for the shell.
    terminal.press("until jobs > list; grep Stopped list; do :; done; echo going$((1+1)); fg\n");
    terminal.until("going2");
    terminal.press("hello\n");
    // The typed text, and the output.
    terminal.until("hello\r\n");
    terminal.until("hello\r\n");
    terminal.press(CTRL_Z);
    terminal.until("Stopped  ");
    terminal.until("cat\r\n");
    terminal.press("fg\n");
    terminal.until("cat\r\n");
    terminal.press("again\n");
    terminal.until("again\r\n");
    terminal.until("again\r\n");
    terminal.press(CTRL_C);
    // The shell forgets keys that come after `fg` and before this.
    terminal.until("bash-");
    assert_eq!(terminal.code(), 130);
}

#[test]
fn ctrl_c_ends_the_script_around_it() {
    let place = Place::new();
    let mut terminal = Terminal::open(&place);
    let command = "distlock run x -- sh -c 'echo ready$((1+1)); exec sleep 1000'";
    let script = format!("{command}; echo went on\n");
    std::fs::write(place.path().join("script"), script).unwrap();
    terminal.press("bash script\n");
    terminal.until("ready2");
    terminal.press(CTRL_C);
    terminal.press("echo code=$?.\n");
    let shown = terminal.until("code=130.");
    assert!(!shown.contains("went on"), "{shown}");
    assert!(!place.is_busy("x"));
}

#[test]
fn an_interactive_command_gets_the_terminal_and_gives_it_back() {
    let place = Place::new();
    let mut terminal = Terminal::open(&place);
    terminal.press("distlock run x -- sh -c 'stty -echo; read word; stty echo; echo word$word'\n");
    terminal.press("secret\n");
    terminal.until("wordsecret");
    assert_eq!(terminal.code(), 0);
    let shell = "bash --norc --noprofile -i";
    let script = format!(
        "distlock run x --max-hold 6s --on-lost kill -- {shell}; read -p name$((1+1)) name; echo is$name"
    );
    std::fs::write(place.path().join("script"), script).unwrap();
    terminal.press("bash script\n");
    terminal.press("sh -c 'read word; echo word$word; exec sleep 1000'\n");
    terminal.press("other\n");
    terminal.until("wordother");
    terminal.until("name2");
    terminal.press("Ada\n");
    terminal.until("isAda");
    assert_eq!(terminal.code(), 0);
}

#[test]
fn a_waiter_shows_the_holder() {
    let place = Place::new();
    let mut holder = place.hold("x");
    let mut terminal = Terminal::open(&place);
    terminal.press("distlock run x -- echo mine$((1+1))\n");
    terminal.until("waiting for x: held by ");
    let who = terminal.until("; number 1 of 1 in line");
    assert!(who.contains("runs sh for "), "{who}");
    terminal.press(CTRL_C);
    assert_eq!(terminal.code(), 130);
    terminal.press("distlock run x -- expr 41 + 1\n");
    terminal.until("waiting for x: held by ");
    holder.say("\n");
    terminal.until("42");
    assert_eq!(terminal.code(), 0);
}

#[test]
fn the_live_view_is_drawn_anew() {
    let place = Place::new();
    let mut terminal = Terminal::open(&place);
    terminal.press("distlock watch\n");
    terminal.until("no client holds or waits for a lock");
    let _holder = place.hold("a job");
    terminal.until("HELD BY");
    let row = terminal.until("runs sh");
    assert!(row.contains("a job"), "{row}");
    terminal.press(CTRL_C);
    assert_eq!(terminal.code(), 130);
}
