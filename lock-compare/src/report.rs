//! The result of a run, in its JSON form.

use std::collections::BTreeMap;

use lock_report::Machine;
use serde::{Deserialize, Serialize};

use crate::{Claim, Outcome, Pace, Part, Store, Verdict};

/// All verdicts of a run.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct Report {
    /// The version of this format.
    pub format: u32,
    /// When the run began, as `2026-11-22T18:00:00Z`.
    pub started: String,
    /// Duration in seconds.
    pub took: f64,
    /// The seed.
    pub seed: u64,
    /// Its thoroughness.
    pub pace: Pace,
    /// Whether it was a control run.
    pub part: Part,
    /// The command that repeats it.
    pub command: String,
    /// The machine.
    pub machine: Machine,
    /// The versions of distlock and the servers.
    pub versions: BTreeMap<String, String>,
    /// The missing parts, with their remedies.
    pub missing: Vec<String>,
    /// The columns.
    pub stores: Vec<Store>,
    /// The rows, sorted by number.
    pub rows: Vec<Row>,
}

/// A claim with its verdicts.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct Row {
    /// The claim.
    pub claim: ClaimText,
    /// A cell per store, in the order of the columns.
    pub cells: Vec<Cell>,
}

/// A claim in its written form.
#[derive(Clone, Debug, Eq, PartialEq, Serialize, Deserialize)]
pub struct ClaimText {
    /// See [`Claim::number`].
    pub number: u8,
    /// See [`Claim::title`].
    pub title: String,
    /// See [`Claim::claimed`].
    pub claimed: String,
    /// See [`Claim::done`].
    pub done: String,
    /// See [`Claim::measured`].
    pub measured: String,
    /// See [`Claim::threshold`].
    pub threshold: String,
}

impl From<&Claim> for ClaimText {
    fn from(claim: &Claim) -> Self {
        Self {
            number: claim.number,
            title: claim.title.into(),
            claimed: claim.claimed.into(),
            done: claim.done.into(),
            measured: claim.measured.into(),
            threshold: claim.threshold.into(),
        }
    }
}

/// One claim on one store.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct Cell {
    /// The store.
    pub store: Store,
    /// Duration in seconds.
    pub took: f64,
    /// The command that repeats it.
    pub command: String,
    /// The result.
    #[serde(flatten)]
    pub outcome: Outcome,
}

impl Row {
    pub(crate) fn cell(&self, store: Store) -> Option<&Cell> {
        self.cells.iter().find(|cell| cell.store == store)
    }
}

impl Report {
    /// The version of the format that this crate writes.
    pub const FORMAT: u32 = 1;

    /// The day on which the run began.
    pub(crate) fn day(&self) -> &str {
        self.started.split('T').next().unwrap_or_default()
    }

    /// The verdicts of a legend, with their numbers of cells.
    pub(crate) fn counts(&self) -> impl Iterator<Item = (Verdict, usize)> {
        let counts = Verdict::ALL.into_iter().map(|verdict| (verdict, self.count(verdict)));
        counts.filter(|(verdict, count)| *count > 0 || verdict.is_answer())
    }

    /// Number of cells with this verdict.
    pub fn count(&self, verdict: Verdict) -> usize {
        self.cells().filter(|(_, cell)| cell.outcome.verdict == verdict).count()
    }

    /// All cells with their claims.
    pub fn cells(&self) -> impl Iterator<Item = (&ClaimText, &Cell)> {
        self.rows.iter().flat_map(|row| row.cells.iter().map(|cell| (&row.claim, cell)))
    }
}
