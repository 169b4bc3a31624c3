//! A bar on stderr that shows how far a long command is.

use std::{io::IsTerminal, time::Duration};

use indicatif::{ProgressBar, ProgressStyle};

const STYLE: &str = "{bar:24} {pos}/{len} {elapsed} {wide_msg}";
const TICK: Duration = Duration::from_millis(500);

/// A bar, if stderr is a terminal.
pub(crate) fn on_terminal() -> Option<ProgressBar> {
    std::io::stderr().is_terminal().then(|| {
        let bar = ProgressBar::new(0);
        if let Ok(style) = ProgressStyle::with_template(STYLE) {
            bar.set_style(style);
        }
        bar.enable_steady_tick(TICK);
        bar
    })
}
