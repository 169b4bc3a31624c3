//! The result of a run, in its JSON form.

use std::collections::BTreeMap;

use lock_report::Machine;
use serde::{Deserialize, Serialize};

use crate::{Figures, Preset, Role, Rounds, Workload};

/// All figures of a run.
#[derive(Clone, Debug, Default, Serialize, Deserialize)]
pub struct Report {
    /// The version of this format.
    pub format: u32,
    /// When the run began, as `2026-11-22T18:00:00Z`.
    pub started: String,
    /// Duration in seconds.
    pub took: f64,
    /// The command that repeats it, without URLs.
    pub command: String,
    /// The machine.
    pub machine: Machine,
    /// The versions of distlock and the servers.
    pub versions: BTreeMap<String, String>,
    /// How it was measured: rounds, warm-up, order, cores. A sentence each.
    pub method: Vec<String>,
    /// The missing parts, with their remedies.
    pub missing: Vec<String>,
    /// A section per preset.
    pub sections: Vec<Section>,
    /// The sweeps.
    pub sweeps: Vec<Sweep>,
}

impl Report {
    /// The version of the JSON form that this program writes and reads.
    pub const FORMAT: u32 = 1;
}

/// One preset on all stores.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct Section {
    /// The preset's name, or `custom`.
    pub preset: String,
    /// The sentence what it models.
    pub models: String,
    /// The load.
    pub workload: Workload,
    /// A row per store and contender, distlock first on each store.
    pub rows: Vec<Row>,
}

impl Section {
    /// Whether its rows have the time from a kill to the next grant, and nothing else.
    pub(crate) fn is_outage(&self) -> bool {
        Preset::of_name(&self.preset).is_some_and(Preset::needs_lab)
    }
}

/// One contender on one store.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct Row {
    /// The scheme of the store's URLs.
    pub store: String,
    /// The contender's name.
    pub contender: String,
    /// What it stands for.
    pub role: Role,
    /// Its figures.
    pub figures: Figures,
    /// Its rate divided by distlock's of the same rounds. `None` for distlock.
    pub ratio: Option<Ratio>,
    /// One second of hand-overs, for the timeline: of distlock and the usual way under `hot-name`.
    pub second: Vec<crate::Turn>,
}

impl Row {
    pub(crate) fn new(store: &str, contender: &str, role: Role, figures: Figures) -> Self {
        let (store, contender) = (store.to_owned(), contender.to_owned());
        Self { store, contender, role, figures, ratio: None, second: Vec::new() }
    }
}

/// How much wider than the range of the rounds the interval is. From two rounds on, it holds the
/// true value in 19 of 20 runs, by Student's t: few rounds show too little of the spread.
fn width(rounds: usize) -> f64 {
    match rounds {
        ..=2 => 16.0,
        3 => 3.0,
        4 => 1.5,
        _ => 1.0,
    }
}

/// A ratio with an interval: the median, the least and the greatest of the rounds. Of two rounds the
/// interval is 16 times as wide, of three 3 times, of four half as wide again. Of one it is a point.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
pub struct Ratio {
    /// The median.
    pub median: f64,
    /// The lower end.
    pub low: f64,
    /// The upper end.
    pub high: f64,
}

impl Ratio {
    /// Of one value per round. `None` without a round.
    pub fn of(rounds: &Rounds) -> Option<Self> {
        let mut values = rounds.0.clone();
        values.sort_by(f64::total_cmp);
        let ends = (*values.first()?, *values.last()?);
        let half = values.len() / 2;
        let median = match values.len() % 2 {
            0 => f64::midpoint(values[half - 1], values[half]),
            _ => values[half],
        };
        let end = |end: f64| (median + width(values.len()) * (end - median)).max(0.0);
        Some(Self { median, low: end(ends.0), high: end(ends.1) })
    }
}

/// How a cost grows.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct Sweep {
    /// What changes: `names`, `workers`, `processes`, `held`, `ttl`.
    pub over: String,
    /// The scheme of the store's URLs.
    pub store: String,
    /// The contender's name.
    pub contender: String,
    /// The points, by their value.
    pub points: Vec<SweepPoint>,
    /// The exponent of a fitted power: time per acquisition grows as value to this power.
    pub exponent: Option<f64>,
}

/// One point of a sweep.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
pub struct SweepPoint {
    /// The value of what changes.
    pub value: f64,
    /// Acquisitions per second (of `held`: of one more lock beside them).
    pub rate: f64,
    /// Client memory per held lock in bytes, where two and more are held.
    pub memory: Option<f64>,
    /// Requests per second while nothing changes, of whole TTLs up to 30 s, where the server counts.
    pub idle_requests: Option<f64>,
}
