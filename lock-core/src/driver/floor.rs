//! The number that all later tokens of a store are above.

use std::fmt;

use crate::FencingToken;

/// How far a store's fencing tokens have come.
///
/// Tokens of two stores have nothing to do with each other, and a store that was restored from a
/// backup counts from the past. Its floor is raised then, so that resources that have seen greater
/// tokens do not refuse its holders: see [`Locks::raise_token_floor`](crate::Locks::raise_token_floor).
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
#[non_exhaustive]
pub struct TokenFloor {
    /// The greatest number that the floor was raised to; 0 if it never was. Tokens of all names that
    /// were handed out since are greater.
    pub above: FencingToken,
    /// No token that the store has handed out is greater, of whatever name.
    pub newest: FencingToken,
}

impl TokenFloor {
    /// What a store says of itself.
    pub const fn new(above: FencingToken, newest: FencingToken) -> Self {
        Self { above, newest }
    }
}

impl fmt::Display for TokenFloor {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "tokens are above {}, the newest is at most {}", self.above, self.newest)
    }
}
