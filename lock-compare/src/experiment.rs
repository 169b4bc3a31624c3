//! What a claim is put to the test by.

use async_trait::async_trait;

use crate::{Claim, Failure, Outcome, Stage};

/// The experiment of one claim.
///
/// It is played once per store. In a control run ([`Part::Swapped`](crate::Part::Swapped)) it lets
/// the locks change parts, or breaks what the claim relies on; its verdict then must be another one
/// wherever the first is an answer.
#[async_trait]
pub trait Experiment: Send + Sync {
    /// The claim.
    fn claim(&self) -> &'static Claim;

    /// Whether nothing else may run beside it, because it measures time.
    fn is_alone(&self) -> bool {
        false
    }

    /// Whether it may be played on a store in use: it uses names of its own, as any client does.
    fn is_harmless(&self) -> bool {
        true
    }

    /// Plays it on the stage's store.
    ///
    /// # Errors
    ///
    /// What went wrong: the verdict is then *failed*, or *not run* for a
    /// [`Missing`](crate::Missing).
    async fn run(&self, stage: &Stage) -> Result<Outcome, Failure>;
}
