//! The floor that all later tokens of a store are above.

use std::fmt;

use crate::FencingToken;

/// The range of a store's fencing tokens so far.
///
/// Tokens of two stores are unrelated, and a store that was restored from a backup counts from the
/// past. The operator then raises its floor, so that resources that have seen greater tokens do not
/// refuse its holders: see [`Locks::raise_token_floor`](crate::Locks::raise_token_floor).
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
#[non_exhaustive]
pub struct TokenFloor {
    /// The greatest number that the floor was raised to; 0 if it was never raised. All tokens
    /// handed out since are greater, for every name.
    pub above: FencingToken,
    /// No token that the store has handed out is greater, for any name.
    pub newest: FencingToken,
}

impl TokenFloor {
    /// A floor as a store reports it.
    pub const fn new(above: FencingToken, newest: FencingToken) -> Self {
        Self { above, newest }
    }
}

impl fmt::Display for TokenFloor {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "tokens are above {}, the newest is at most {}", self.above, self.newest)
    }
}
