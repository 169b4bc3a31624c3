//! What is told of a round that failed: what the test did, and what its holders logged.

use std::{
    fmt::Display,
    fs::{self, File},
    path::{Path, PathBuf},
};

use lock_core::{Clock, Instant, deadline::wall_clock};

/// How many holders take part in a round, with the one before.
const LAST: usize = 3;

/// Events and logs are told in one order, by the time of day.
pub struct Record {
    folder: PathBuf,
    holders: usize,
    events: Vec<(Instant, String)>,
}

impl Record {
    pub fn new(folder: &Path) -> Self {
        Self { folder: folder.to_owned(), holders: 0, events: Vec::new() }
    }

    /// The stderr of one more holder.
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

    /// A new round begins: what was before is no longer told.
    pub fn forget(&mut self) {
        self.events.clear();
    }

    /// Tells a failure, and all that led to it.
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
            // What has no time came with what stands before it.
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
        // Stable: what happened at once keeps its order.
        lines.sort_by(|(one, _), (other, _)| one.cmp(other));
        let lines = lines.iter().map(|(at, text)| format!("\n  {at} {text}"));
        format!("{failure}{}", lines.collect::<String>())
    }
}
