//! A pseudoterminal, seen from the user's side.

use std::{
    fs::File,
    io::{Read, Write},
    os::fd::OwnedFd,
    time::Duration,
};

use lock_core::Clock;
use rustix::{
    event::{PollFd, PollFlags, Timespec, poll},
    io::retry_on_intr,
    pty::{OpenptFlags, grantpt, ioctl_tiocgptpeer, openpt, unlockpt},
    termios::{LocalModes, OptionalActions, Winsize, tcgetattr, tcsetattr, tcsetwinsize},
};

pub struct Pty {
    person: File,
    /// Text that was shown and not yet read.
    shown: String,
}

impl Pty {
    pub fn open(columns: u16, rows: u16) -> Self {
        let person = openpt(OpenptFlags::RDWR | OpenptFlags::NOCTTY).expect("a terminal");
        grantpt(&person).and_then(|()| unlockpt(&person)).expect("its other side");
        let size = Winsize { ws_row: rows, ws_col: columns, ws_xpixel: 0, ws_ypixel: 0 };
        tcsetwinsize(&person, size).expect("a size");
        // Otherwise a key that sends a signal discards what was shown and not yet read.
        let mut modes = tcgetattr(&person).expect("modes");
        modes.local_modes |= LocalModes::NOFLSH;
        tcsetattr(&person, OptionalActions::Now, &modes).expect("modes");
        Self { person: person.into(), shown: String::new() }
    }

    /// The side on which a program draws and reads keys.
    pub fn other_side(&self) -> OwnedFd {
        let flags = OpenptFlags::RDWR | OpenptFlags::NOCTTY;
        ioctl_tiocgptpeer(&self.person, flags).expect("its other side")
    }

    pub fn press(&mut self, keys: &str) {
        self.person.write_all(keys.as_bytes()).expect("it listens");
    }

    /// Reads until this is shown, and returns the text before it. The error has all text that was
    /// shown before the last program left the other side.
    pub fn until(&mut self, text: &str) -> Result<String, String> {
        let mut bytes = [0; 4096];
        let limit = Clock::Boot.now() + Duration::from_secs(60);
        loop {
            if let Some((before, after)) = self.shown.split_once(text) {
                let before = before.to_owned();
                self.shown = after.to_owned();
                return Ok(before);
            }
            let mut readable = [PollFd::new(&self.person, PollFlags::IN)];
            let left = limit.since(Clock::Boot.now());
            let left = Timespec::try_from(left).expect("a minute");
            let ready = retry_on_intr(|| poll(&mut readable, Some(&left))).expect("a terminal");
            assert!(ready > 0, "not shown for a minute: {text:?}, but {}", self.shown);
            match self.person.read(&mut bytes) {
                Ok(read) if read > 0 => self.shown += &String::from_utf8_lossy(&bytes[..read]),
                _ => return Err(std::mem::take(&mut self.shown)),
            }
        }
    }
}
