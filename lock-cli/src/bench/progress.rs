//! Progress on stderr: a bar on a terminal, else a line for each round.

use std::sync::{Mutex, MutexGuard, PoisonError};

use indicatif::ProgressBar;
use lock_bench::Progress as Event;

use crate::{bar, exit::say};

/// Shows how far a benchmark is.
pub(super) struct Progress {
    bar: Option<ProgressBar>,
    /// The round that is measured.
    round: Mutex<String>,
}

impl Progress {
    pub(super) fn new() -> Self {
        Self { bar: bar::on_terminal(), round: Mutex::default() }
    }

    pub(super) fn tell(&self, event: Event<'_>) {
        match (event, &self.bar) {
            (Event::Rounds(all), Some(bar)) => bar.set_length(all as u64),
            (Event::Begins(preset, store, contender), bar) => {
                let round = format!("{preset} on {store}: {contender}");
                bar.iter().for_each(|bar| bar.set_message(round.clone()));
                *self.round() = round;
            }
            (Event::Ended(_), Some(bar)) => bar.inc(1),
            (Event::Ended(rate), None) => {
                // After a crash it takes seconds.
                let digits = if rate < 10.0 { 2 } else { 0 };
                say(format_args!("{}: {rate:.digits$} per s", self.round()));
            }
            _ => {}
        }
    }

    pub(super) fn end(&self) {
        self.bar.iter().for_each(ProgressBar::finish_and_clear);
    }

    fn round(&self) -> MutexGuard<'_, String> {
        self.round.lock().unwrap_or_else(PoisonError::into_inner)
    }
}
