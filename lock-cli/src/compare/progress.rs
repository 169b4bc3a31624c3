//! Progress on stderr: a bar on a terminal, else a line for each verdict.

use indicatif::ProgressBar;
use lock_compare::Progress as Event;

use crate::{bar, exit::say};

/// Shows how far a comparison is.
pub(super) struct Progress {
    bar: Option<ProgressBar>,
}

impl Progress {
    pub(super) fn new() -> Self {
        Self { bar: bar::on_terminal() }
    }

    pub(super) fn tell(&self, event: Event<'_>) {
        match (event, &self.bar) {
            (Event::Cells(all), Some(bar)) => bar.set_length(all as u64),
            (Event::Begins(title, store), Some(bar)) => {
                bar.set_message(format!("{store}: {title}"));
            }
            (Event::Ended(..), Some(bar)) => bar.inc(1),
            (Event::Ended(number, cell), None) => {
                let (store, verdict, took) = (cell.store, cell.outcome.verdict, cell.took);
                say(format_args!("C{number} on {store}: {verdict} ({took:.1} s)"));
            }
            _ => {}
        }
    }

    pub(super) fn end(&self) {
        self.bar.iter().for_each(ProgressBar::finish_and_clear);
    }
}
