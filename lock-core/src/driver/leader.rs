//! The leader of an election, as a driver reports it.

use crate::{FencingToken, Holder, Result};

/// The leader of an election.
#[derive(Clone, Debug, Eq, PartialEq)]
#[cfg_attr(feature = "serde", derive(serde::Serialize, serde::Deserialize))]
#[non_exhaustive]
pub struct Leader {
    /// The fencing token of the leadership: later leaders have greater ones.
    pub token: FencingToken,
    /// The leader's value: from its campaign, or proclaimed since.
    pub value: Vec<u8>,
    /// The leader's description, as far as the store can tell: the one of
    /// [`Election::holder`](crate::Election::holder).
    pub holder: Holder,
}

impl Leader {
    /// A leader as a driver read it.
    pub fn new(token: FencingToken, value: Vec<u8>, holder: Holder) -> Self {
        Self { token, value, holder }
    }
}

/// A driver's message to an observer: the present leader, or none.
pub type Observed = Result<Option<Leader>>;
