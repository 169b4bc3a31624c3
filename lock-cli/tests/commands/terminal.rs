//! What a person at a terminal sees, and what their keys do: a shell on a pseudoterminal.

use std::{
    fs::File,
    io::{Read, Write},
    os::fd::OwnedFd,
    path::Path,
    process::{Child, Stdio},
};

use rustix::{
    pty::{OpenptFlags, grantpt, ioctl_tiocgptpeer, openpt, unlockpt},
    termios::{Winsize, tcsetwinsize},
};

use crate::place::Place;

const CTRL_C: &str = "\x03";
const CTRL_Z: &str = "\x1a";

/// A shell with job control. It is killed when this is dropped.
struct Terminal {
    keys: File,
    shell: Child,
    /// What was shown, and not yet looked at.
    shown: String,
}

impl Terminal {
    fn open(place: &Place) -> Self {
        let keys = openpt(OpenptFlags::RDWR | OpenptFlags::NOCTTY).expect("a terminal");
        grantpt(&keys).and_then(|()| unlockpt(&keys)).expect("its other side");
        let size = Winsize { ws_row: 24, ws_col: 150, ws_xpixel: 0, ws_ypixel: 0 };
        tcsetwinsize(&keys, size).expect("a size");
        let screen = || -> Stdio {
            let flags = OpenptFlags::RDWR | OpenptFlags::NOCTTY;
            let screen: OwnedFd = ioctl_tiocgptpeer(&keys, flags).expect("its other side");
            screen.into()
        };
        let program = Path::new(env!("CARGO_BIN_EXE_distlock"));
        let path = format!("{}:/usr/bin:/bin", program.parent().expect("a folder").display());
        // The tests may run where keys are ignored: in the background of another shell.
        let start = ["--default-signal=INT,QUIT,TSTP", "setsid", "--ctty"];
        let shell = ["bash", "--norc", "--noprofile", "-i"];
        let mut shell = place.other("env", &[&start as &[&str], &shell].concat());
        shell.env("PATH", path).env("TERM", "xterm").current_dir(place.path());
        shell.stdin(screen()).stdout(screen()).stderr(screen());
        let shell = shell.spawn().expect("a shell");
        Self { keys: keys.into(), shell, shown: String::new() }
    }

    fn press(&mut self, keys: &str) {
        self.keys.write_all(keys.as_bytes()).expect("it listens");
    }

    /// Reads until this is shown; answers what came before. The shell shows what is typed, too.
    fn until(&mut self, text: &str) -> String {
        let mut bytes = [0; 4096];
        loop {
            if let Some((before, after)) = self.shown.split_once(text) {
                let before = before.to_owned();
                self.shown = after.to_owned();
                return before;
            }
            let read = self.keys.read(&mut bytes).unwrap_or(0);
            assert!(read > 0, "it ended before {text:?}: {}", self.shown);
            self.shown += &String::from_utf8_lossy(&bytes[..read]);
        }
    }

    /// The exit code of what was run last.
    fn code(&mut self) -> u8 {
        self.press("echo code=$?.\n");
        loop {
            self.until("code=");
            // Not what was typed.
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

#[test]
fn ctrl_z_stops_the_command_and_fg_goes_on() {
    let place = Place::new();
    let mut terminal = Terminal::open(&place);
    let script = "echo $$ > pid; echo ready$((1+1)); read line; echo got$line; exec sleep 1000";
    terminal.press(&format!("distlock run x --ttl 1h -- sh -c '{script}'\n"));
    terminal.until("ready2");
    terminal.press(CTRL_Z);
    terminal.until("Stopped");
    terminal.until("distlock run");
    let pid = std::fs::read_to_string(place.path().join("pid")).unwrap();
    let stat = std::fs::read_to_string(format!("/proc/{}/stat", pid.trim())).unwrap();
    assert!(stat.contains(") T "), "it runs: {stat}");
    assert!(place.is_busy("x"));
    terminal.press("fg\n");
    terminal.until("distlock run");
    terminal.press("that\n");
    terminal.until("gotthat");
    terminal.press(CTRL_C);
    assert_eq!(terminal.code(), 130);
    assert!(!place.is_busy("x"));
}

#[test]
fn a_waiter_says_whom_it_waits_for() {
    let place = Place::new();
    let mut holder = place.start(&["run", "x", "--", "sh", "-c", "echo; read line"]);
    holder.line();
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
    terminal.until("0 names");
    let mut holder = place.start(&["run", "a job", "--", "sh", "-c", "echo; read line"]);
    holder.line();
    terminal.until("HELD BY");
    let row = terminal.until("runs sh");
    assert!(row.contains("a job"), "{row}");
    terminal.press(CTRL_C);
    assert_eq!(terminal.code(), 130);
}
