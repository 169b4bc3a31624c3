//! The fencing token.

use std::fmt;

/// A number that is part of every grant: strictly greater for each later grant of the same name.
///
/// Give it to the resource that the lock protects. The resource keeps the greatest token that it
/// has seen and rejects every write with a smaller one. So a holder that was paused past its TTL
/// cannot overwrite its successor's writes. [`Gate`](crate::Gate) is that check in memory; in SQL
/// it is `UPDATE .. WHERE fence <= $token`.
///
/// How strictly tokens rise is graded per store in
/// [`Guarantees::fencing`](crate::Guarantees::fencing).
#[derive(Clone, Copy, Debug, Eq, Hash, Ord, PartialEq, PartialOrd)]
#[cfg_attr(feature = "serde", derive(serde::Serialize, serde::Deserialize), serde(transparent))]
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

    /// The number for a column of a signed type, such as SQL's `BIGINT`. The tokens of every store
    /// are below 2^63, so the number is exact. A greater number becomes the greatest `i64`; two of
    /// these become equal, and a resource cannot tell them apart. It can only come from elsewhere:
    /// from [`new`](Self::new), a text, a request. `i64::try_from` refuses it.
    ///
    /// ```
    /// # use lock_core as distlock;
    /// use distlock::FencingToken;
    ///
    /// assert_eq!(FencingToken::new(34).as_i64(), 34);
    /// assert_eq!("34".parse::<FencingToken>()?, FencingToken::new(34));
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

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_token_is_read_from_digits_only() {
        assert_eq!("034".parse::<FencingToken>().unwrap(), FencingToken::new(34));
        for text in ["", "+5", "-0", " 5", "5 ", "٥", "18446744073709551616"] {
            let error = text.parse::<FencingToken>().unwrap_err().to_string();
            assert!(error.contains("decimal digits"), "{text}: {error}");
        }
    }

    #[test]
    fn no_two_tokens_become_one_number_of_a_signed_type() {
        for value in [0, 34, i64::MAX.unsigned_abs()] {
            let token = FencingToken::new(value);
            assert_eq!(i64::try_from(token).unwrap().unsigned_abs(), value);
            assert_eq!(token.as_i64().unsigned_abs(), value);
        }
        for value in [1 << 63, (1 << 63) + 1, u64::MAX] {
            let refused = i64::try_from(FencingToken::new(value)).unwrap_err().to_string();
            assert!(refused.contains(&value.to_string()), "{refused}");
            assert!(refused.contains("0 to 9223372036854775807"), "{refused}");
        }
    }
}
