//! The test of a claim.

use async_trait::async_trait;

use crate::{Claim, Failure, Outcome, Stage};

/// The experiment of one claim.
///
/// It is played once per store. In a control run ([`Part::Swapped`](crate::Part::Swapped)) the
/// locks change parts, or the experiment breaks the basis of the claim. Its verdict must then
/// differ from the first one, if the first one is an answer.
#[async_trait]
pub trait Experiment: Send + Sync {
    /// The claim.
    fn claim(&self) -> &'static Claim;

    /// Whether it must run alone, because it measures time.
    fn is_alone(&self) -> bool {
        false
    }

    /// Whether it may be played on a store in use. It then uses its own names, as any client does.
    fn is_harmless(&self) -> bool {
        true
    }

    /// Plays it on the stage's store.
    ///
    /// An error makes the verdict *failed*, or *not run* for a [`Missing`](crate::Missing).
    async fn run(&self, stage: &Stage) -> Result<Outcome, Failure>;
}
