//! The verdict of an experiment.

use std::fmt;

use serde::{Deserialize, Serialize};

/// The verdict on a claim for one store.
#[derive(Clone, Copy, Debug, Eq, Hash, Ord, PartialEq, PartialOrd, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Verdict {
    /// The claim was observed.
    Holds,
    /// The claim is about a mistake or a danger, and its damage was observed.
    Breaks,
    /// The opposite of the claim was observed.
    Differs,
    /// For a claim that one is faster or cheaper: the difference is within the threshold.
    NoDifference,
    /// The claim has no meaning for this store.
    CannotBeAsked,
    /// A part is missing on this machine, or the experiment would harm a store in use.
    NotRun,
    /// The experiment itself failed: no verdict.
    Failed,
}

impl Verdict {
    /// All of them.
    pub const ALL: [Self; 7] = [
        Self::Holds,
        Self::Breaks,
        Self::Differs,
        Self::NoDifference,
        Self::CannotBeAsked,
        Self::NotRun,
        Self::Failed,
    ];

    /// The words for people.
    pub fn words(self) -> &'static str {
        match self {
            Self::Holds => "holds",
            Self::Breaks => "breaks as documented",
            Self::Differs => "differs from the documents",
            Self::NoDifference => "no difference",
            Self::CannotBeAsked => "cannot be asked",
            Self::NotRun => "not run",
            Self::Failed => "failed",
        }
    }

    /// A sign of one column, for a terminal.
    pub fn sign(self) -> &'static str {
        match self {
            Self::Holds => "✓",
            // No cross: the claim warned of a danger, and was right.
            Self::Breaks => "⚠",
            Self::Differs => "≠",
            Self::NoDifference => "=",
            Self::CannotBeAsked => "·",
            Self::NotRun => "-",
            Self::Failed => "!",
        }
    }

    /// Whether the store answered the question.
    pub fn is_answer(self) -> bool {
        !matches!(self, Self::CannotBeAsked | Self::NotRun | Self::Failed)
    }
}

/// The sign for what distlock did: its work, or not.
pub(crate) fn sign_of_distlock(well: bool) -> &'static str {
    if well { "✓" } else { "✗" }
}

impl fmt::Display for Verdict {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad(self.words())
    }
}
