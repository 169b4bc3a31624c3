//! The fencing token.

use std::{fmt, str::FromStr};

use crate::{Error, Result};

/// A number that is part of every grant: strictly greater for each later grant of the same name.
///
/// Give it to the resource that the lock protects. The resource keeps the greatest token that it
/// has seen and rejects every write with a smaller one, so that a holder which was paused past its
/// TTL cannot overwrite what its successor did. [`Gate`](crate::Gate) is that check in memory; in
/// SQL it is `UPDATE .. WHERE fence <= $token`.
///
/// How strictly tokens rise is graded per store in [`Guarantees::fencing`](crate::Guarantees::fencing).
#[derive(Clone, Copy, Debug, Eq, Hash, Ord, PartialEq, PartialOrd)]
#[cfg_attr(feature = "serde", derive(serde::Serialize, serde::Deserialize))]
#[cfg_attr(feature = "serde", serde(transparent))]
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

    /// The number for a column of a signed type, such as SQL's `BIGINT`. The tokens of every store are below
    /// 2^63; a greater number, which only [`new`](Self::new) makes, becomes the greatest `i64`.
    ///
    /// ```
    /// use lock_core::FencingToken;
    ///
    /// assert_eq!(FencingToken::new(34).as_i64(), 34);
    /// assert_eq!("34".parse::<FencingToken>()?, FencingToken::from(34));
    /// # Ok::<(), lock_core::Error>(())
    /// ```
    pub const fn as_i64(self) -> i64 {
        if self.0 > i64::MAX as u64 { i64::MAX } else { self.0 as i64 }
    }
}

impl fmt::Display for FencingToken {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.0.fmt(f)
    }
}

impl From<u64> for FencingToken {
    fn from(value: u64) -> Self {
        Self(value)
    }
}

impl FromStr for FencingToken {
    type Err = Error;

    /// # Errors
    ///
    /// [`Error::InvalidOption`] for what is no number from 0 to 2^64 - 1 in decimal digits.
    fn from_str(text: &str) -> Result<Self> {
        text.parse().map(Self).map_err(|_| Error::InvalidOption {
            option: "token".to_owned(),
            value: text.chars().take(24).collect(),
            allowed: "a number from 0 to 2^64 - 1 in decimal digits".to_owned(),
        })
    }
}

impl From<FencingToken> for u64 {
    fn from(token: FencingToken) -> Self {
        token.0
    }
}
