//! Who leads, as a driver tells it.

use crate::{FencingToken, Holder, Result};

/// Who leads.
#[derive(Clone, Debug, Eq, PartialEq)]
#[cfg_attr(feature = "serde", derive(serde::Serialize, serde::Deserialize))]
#[non_exhaustive]
pub struct Leader {
    /// The fencing token of the leadership: later leaders have greater ones.
    pub token: FencingToken,
    /// What the leader says to everybody: the value of its campaign, or what it proclaimed since.
    pub value: Vec<u8>,
    /// Who it is, as far as the store can tell: what its
    /// [`Election::holder`](crate::Election::holder) says.
    pub holder: Holder,
}

impl Leader {
    /// A leader as a driver read it.
    pub fn new(token: FencingToken, value: Vec<u8>, holder: Holder) -> Self {
        Self { token, value, holder }
    }
}

/// What a driver sends to an observer: the leader now, or that there is none.
pub type Observed = Result<Option<Leader>>;
