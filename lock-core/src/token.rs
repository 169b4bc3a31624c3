//! The fencing token.

use std::fmt;

/// A number that is part of every grant: strictly greater for each later grant of the same name.
///
/// Give it to the resource that the lock protects. The resource keeps the greatest token that it
/// has seen and rejects every write with a smaller one, so that a holder which was paused past its
/// TTL cannot overwrite what its successor did. [`Gate`](crate::Gate) is that check in memory; in
/// SQL it is `UPDATE .. WHERE fence <= $token`.
///
/// How strictly tokens rise is graded per store in [`Guarantees::fencing`](crate::Guarantees::fencing).
#[derive(Clone, Copy, Debug, Eq, Hash, Ord, PartialEq, PartialOrd)]
pub struct FencingToken(u64);

impl FencingToken {
    /// Wraps a number that a store handed out, or that a resource remembers.
    pub const fn new(value: u64) -> Self {
        Self(value)
    }

    /// The number itself, for a resource that stores or compares it.
    pub const fn value(self) -> u64 {
        self.0
    }
}

impl fmt::Display for FencingToken {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.0.fmt(f)
    }
}

impl From<FencingToken> for u64 {
    fn from(token: FencingToken) -> Self {
        token.0
    }
}
