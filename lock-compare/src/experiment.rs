//! The test of a claim.

use lock_core::BoxFuture;

use crate::{Claim, Failure, Outcome, Stage};

/// Where an experiment may be played.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub(crate) enum Where {
    /// Also on a store in use. It then uses its own names, as any client does.
    Anywhere,
    /// On private stores: it would do harm to a store in use.
    Private,
    /// On private stores while nothing else runs, because it measures time.
    Alone,
}

/// The experiment of one claim.
///
/// It is played once per store. In a control run ([`Part::Swapped`](crate::Part::Swapped)) the
/// locks change parts, or the experiment breaks the basis of the claim. Its verdict must then
/// differ from the first one, if the first one is an answer.
pub struct Experiment {
    pub(crate) claim: &'static Claim,
    pub(crate) place: Where,
    /// Plays it on the stage's store. An error makes the verdict *failed*, or *not run* for a
    /// [`Missing`](crate::Missing).
    pub(crate) play: for<'a> fn(&'a Stage) -> BoxFuture<'a, Result<Outcome, Failure>>,
}

impl Experiment {
    /// The claim.
    pub fn claim(&self) -> &'static Claim {
        self.claim
    }

    /// Whether it must run alone.
    pub fn is_alone(&self) -> bool {
        self.place == Where::Alone
    }
}
