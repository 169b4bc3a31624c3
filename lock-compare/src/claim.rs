//! What the articles say.

use serde::Serialize;

/// A claim of the articles, and how it is put to the test. Each text is one sentence.
#[derive(Clone, Copy, Debug, Eq, PartialEq, Serialize)]
pub struct Claim {
    /// Its number, 1 to 44: `C7` is 7.
    pub number: u8,
    /// A few words, for the head of a row.
    pub title: &'static str,
    /// What the articles claim.
    pub claimed: &'static str,
    /// What the experiment does.
    pub done: &'static str,
    /// What it measures.
    pub measured: &'static str,
    /// The fixed thresholds between the verdicts.
    pub threshold: &'static str,
}

impl Claim {
    /// How it is called: `C7`.
    pub fn id(&self) -> String {
        format!("C{}", self.number)
    }
}
