//! A claim of the articles.

use serde::Serialize;

/// A claim of the articles, and its test. Each text is one sentence.
#[derive(Clone, Copy, Debug, Eq, PartialEq, Serialize)]
pub struct Claim {
    /// Its number, 1 to 44: `C7` is 7.
    pub number: u8,
    /// A few words, for the title of a row.
    pub title: &'static str,
    /// The articles' claim.
    pub claimed: &'static str,
    /// The steps of the experiment.
    pub done: &'static str,
    /// The measured values.
    pub measured: &'static str,
    /// The fixed thresholds between the verdicts.
    pub threshold: &'static str,
}
