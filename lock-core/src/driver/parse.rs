//! Parsing names and tokens from outside, with checks.

use std::str::FromStr;

use crate::{Error, FencingToken, LockName, Result, keep::errors::invalid};

impl LockName {
    /// Checks a name.
    ///
    /// # Errors
    ///
    /// [`Error::InvalidName`] if the name is empty or longer than [`Self::MAX_BYTES`].
    pub fn new(name: impl AsRef<str>) -> Result<Self> {
        let name = name.as_ref();
        let reason = match name.len() {
            0 => "a name must not be empty".to_owned(),
            1..=Self::MAX_BYTES => return Ok(Self(name.into())),
            n => format!("{n} bytes long; at most {} are allowed", Self::MAX_BYTES),
        };
        Err(Error::InvalidName { name: name.chars().take(64).collect(), reason })
    }

    /// The name with this [`escaped`](Self::escaped) key component; `None` if there is none.
    pub fn from_escaped(component: &str) -> Option<Self> {
        let text = percent_encoding::percent_decode_str(component).decode_utf8().ok()?;
        Self::new(text).ok().filter(|name| name.escaped() == component)
    }
}

impl FromStr for LockName {
    type Err = Error;

    /// # Errors
    ///
    /// Same as [`LockName::new`].
    fn from_str(name: &str) -> Result<Self> {
        Self::new(name)
    }
}

impl TryFrom<String> for LockName {
    type Error = Error;

    fn try_from(name: String) -> Result<Self> {
        Self::new(name)
    }
}

impl FromStr for FencingToken {
    type Err = Error;

    /// # Errors
    ///
    /// [`Error::InvalidOption`] for any text but a number from 0 to 2^64 - 1 in decimal digits.
    fn from_str(text: &str) -> Result<Self> {
        // `parse` alone would accept a sign.
        let digits = Some(text).filter(|text| text.bytes().all(|byte| byte.is_ascii_digit()));
        let number = digits.and_then(|digits| digits.parse().ok());
        number.map(Self::new).ok_or_else(|| {
            let start: String = text.chars().take(24).collect();
            invalid("token", start, "a number from 0 to 2^64 - 1 in decimal digits")
        })
    }
}

impl TryFrom<FencingToken> for i64 {
    type Error = Error;

    /// The exact number for a column of a signed type. For tokens that other programs sent or
    /// stored.
    ///
    /// ```
    /// # use lock_core as distlock;
    /// use distlock::FencingToken;
    ///
    /// assert_eq!(i64::try_from(FencingToken::new(34))?, 34);
    /// assert!(i64::try_from(FencingToken::new(1 << 63)).is_err());
    /// # Ok::<(), lock_core::Error>(())
    /// ```
    ///
    /// # Errors
    ///
    /// [`Error::InvalidOption`] for 2^63 and more, which no store hands out.
    fn try_from(token: FencingToken) -> Result<Self> {
        let allowed = || format!("a number from 0 to {}, as every store hands out", Self::MAX);
        Self::try_from(token.value()).map_err(|_| invalid("token", token, allowed()))
    }
}
