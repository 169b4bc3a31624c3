//! How far a long command is, on stderr: a bar on a terminal, else a line for each step.

use std::{
    io::{IsTerminal, stderr},
    sync::{Mutex, MutexGuard, PoisonError},
    time::Duration,
};

use indicatif::{ProgressBar, ProgressStyle};

use crate::exit::say;

const STYLE: &str = "{bar:24} {pos}/{len} {elapsed} {wide_msg}";
const TICK: Duration = Duration::from_millis(500);

/// A drop clears the bar.
pub(crate) struct Progress {
    bar: Option<ProgressBar>,
    /// The step that has begun last.
    step: Mutex<String>,
}

impl Progress {
    pub(crate) fn new() -> Self {
        let bar = stderr().is_terminal().then(|| {
            let bar = ProgressBar::new(0);
            if let Ok(style) = ProgressStyle::with_template(STYLE) {
                bar.set_style(style);
            }
            bar.enable_steady_tick(TICK);
            bar
        });
        Self { bar, step: Mutex::default() }
    }

    pub(crate) fn all(&self, steps: usize) {
        self.bar.iter().for_each(|bar| bar.set_length(steps as u64));
    }

    pub(crate) fn begins(&self, step: String) {
        self.bar.iter().for_each(|bar| bar.set_message(step.clone()));
        *self.step() = step;
    }

    /// A step has ended. Where there is no bar, the line says so; it is made of the last step.
    pub(crate) fn ended(&self, line: impl FnOnce(&str) -> String) {
        match &self.bar {
            Some(bar) => bar.inc(1),
            None => say(line(&self.step())),
        }
    }

    fn step(&self) -> MutexGuard<'_, String> {
        self.step.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Drop for Progress {
    fn drop(&mut self) {
        self.bar.iter().for_each(ProgressBar::finish_and_clear);
    }
}
