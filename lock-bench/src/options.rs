//! What to run.

use std::time::Duration;

use crate::{Preset, Workload};

/// The options of a run.
#[derive(Clone, Debug, Default)]
pub struct Options {
    /// Stores in use, by URL. Empty without `lab`: memory and an SQLite file of the run's own. With
    /// `lab`, a scheme alone stands for a private server: `redis`.
    pub stores: Vec<String>,
    /// Private servers of each store that is installed, or of those that `stores` names.
    pub lab: bool,
    /// The presets. With `custom`, none.
    pub presets: Vec<Preset>,
    /// A load by hand.
    pub custom: Option<Workload>,
    /// How long a round is measured.
    pub seconds: Duration,
    /// How many rounds: at least 3, 5 by default.
    pub rounds: u32,
    /// What a sweep changes, with its values.
    pub sweep: Option<(String, Vec<f64>)>,
    /// Without floors and usual ways.
    pub alone: bool,
    /// The command that repeats the run.
    pub command: String,
}

impl Options {
    /// The loads, each with its preset unless it is a load by hand.
    pub(crate) fn loads(&self) -> Vec<(Option<Preset>, Workload)> {
        let named = |preset: &Preset| (Some(*preset), preset.workload(self.seconds));
        // A sweep is a run of that load by itself.
        let custom = self.custom.clone().filter(|_| self.sweep.is_none());
        self.presets.iter().map(named).chain(custom.map(|load| (None, load))).collect()
    }
}

/// How far a run is.
#[derive(Clone, Copy, Debug)]
#[non_exhaustive]
pub enum Progress<'a> {
    /// This many rounds of contenders will be played.
    Rounds(usize),
    /// A round begins: its preset, store and contender.
    Begins(&'a str, &'a str, &'a str),
    /// It has ended with this many acquisitions per second.
    Ended(f64),
}
