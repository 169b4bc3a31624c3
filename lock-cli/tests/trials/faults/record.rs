//! The report of a failed round: the actions of the test, and the logs of its holders.

use std::{
    fmt::Display,
    fs::{self, File},
    path::{Path, PathBuf},
};

use lock_core::{Clock, Instant, deadline::wall_clock};

/// Number of holders in a round, with the one before.
const LAST: usize = 3;

/// Lists events and logs in one order, by the time of day.
pub struct Record {
    folder: PathBuf,
    holders: usize,
    events: Vec<(Instant, String)>,
}

impl Record {
    pub fn new(folder: &Path) -> Self {
        Self { folder: folder.to_owned(), holders: 0, events: Vec::new() }
    }

    /// Creates the file for the stderr of one more holder.
    pub fn holder(&mut self) -> File {
        self.holders += 1;
        if let Some(old) = self.holders.checked_sub(LAST + 1) {
            // It may have failed to start.
            let _ = fs::remove_file(self.stderr(old));
        }
        File::create(self.stderr(self.holders)).expect("a file for its stderr")
    }

    fn stderr(&self, holder: usize) -> PathBuf {
        self.folder.join(format!("stderr-{holder}"))
    }

    pub fn event(&mut self, what: impl Display) {
        self.event_at(Clock::Boot.now(), what);
    }

    pub fn event_at(&mut self, at: Instant, what: impl Display) {
        self.events.push((at, what.to_string()));
    }

    /// Begins a new round, and drops earlier events.
    pub fn forget(&mut self) {
        self.events.clear();
    }

    /// Returns the report of a failure, with all that led to it.
    pub fn tell(mut self, failure: &str) -> String {
        self.event("it failed");
        let (now, today) = (Clock::Boot.now(), wall_clock());
        let events = self.events.iter().map(|(at, what)| {
            let at = humantime::format_rfc3339_micros(today - now.since(*at)).to_string();
            (at, format!("test: {what}"))
        });
        let mut lines: Vec<_> = events.collect();
        for holder in (1..=self.holders).rev().take(LAST) {
            let log = fs::read_to_string(self.stderr(holder)).unwrap_or_default();
            // A line without a time has the time of the line before it.
            let mut last = String::new();
            for line in log.lines() {
                let (at, text) = line.split_once(' ').unwrap_or(("", line));
                let stamped = at.ends_with('Z') && at.contains('T');
                let text = if stamped { text } else { line };
                if stamped {
                    at.clone_into(&mut last);
                }
                lines.push((last.clone(), format!("holder {holder}: {text}")));
            }
        }
        // A stable sort: simultaneous lines keep their order.
        lines.sort_by(|(one, _), (other, _)| one.cmp(other));
        let lines = lines.iter().map(|(at, text)| format!("\n  {at} {text}"));
        format!("{failure}{}", lines.collect::<String>())
    }
}
