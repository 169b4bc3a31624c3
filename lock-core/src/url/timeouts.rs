//! The limits of a connection's waits.

use std::{ops::RangeInclusive, time::Duration};

use super::options::Options;
use crate::{Result, driver::duration::shown, keep::errors::invalid};

/// The limits that can be chosen.
const ALLOWED: RangeInclusive<Duration> = Duration::from_millis(100)..=Duration::from_secs(60);

/// The limits of a connection's waits, 100 ms to 1 min each. In a URL: `connect_timeout=2s` and
/// `request_timeout=500ms`. The page of each driver says its defaults.
#[derive(Clone, Copy, Debug, Default, Eq, PartialEq)]
#[cfg_attr(feature = "serde", derive(serde::Deserialize), serde(default, deny_unknown_fields))]
#[non_exhaustive]
pub struct Timeouts {
    /// The longest time until a server is reached, logged in to, and ready.
    #[cfg_attr(feature = "serde", serde(deserialize_with = "crate::duration::deserialize"))]
    pub connect: Option<Duration>,
    /// The longest wait for the answer to a request. The wait for a lock is not one.
    #[cfg_attr(feature = "serde", serde(deserialize_with = "crate::duration::deserialize"))]
    pub request: Option<Duration>,
}

impl Timeouts {
    crate::setters! {
        /// Sets [`connect`](Self#structfield.connect), 100 ms to 1 min.
        connect: Duration => Some(connect);
        /// Sets [`request`](Self#structfield.request), 100 ms to 1 min.
        request: Duration => Some(request);
    }

    /// For drivers: reads the options of a URL.
    ///
    /// # Errors
    ///
    /// [`Error::InvalidOption`](crate::Error::InvalidOption) for a text that is not a duration,
    /// and as [`check`](Self::check).
    pub fn from_options(options: &mut Options<'_>) -> Result<Self> {
        let connect = options.duration("connect_timeout")?;
        let timeouts = Self { connect, request: options.duration("request_timeout")? };
        timeouts.check()?;
        Ok(timeouts)
    }

    /// For drivers: refuses limits out of range.
    ///
    /// # Errors
    ///
    /// [`Error::InvalidOption`](crate::Error::InvalidOption) with the range.
    pub fn check(&self) -> Result<()> {
        for (option, limit) in
            [("connect_timeout", self.connect), ("request_timeout", self.request)]
        {
            let Some(limit) = limit.filter(|limit| !ALLOWED.contains(limit)) else { continue };
            let allowed = format!("{} to {}", shown(*ALLOWED.start()), shown(*ALLOWED.end()));
            return Err(invalid(option, shown(limit), allowed));
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::StoreUrl;

    #[test]
    fn limits_are_within_their_range() {
        let read = |query: &str| {
            let url = StoreUrl::parse(&format!("x://h?{query}")).unwrap();
            Timeouts::from_options(&mut url.options())
        };
        let (short, long) = (Duration::from_millis(100), Duration::from_secs(60));
        let expected = Timeouts::default().connect(short).request(long);
        assert_eq!(read("connect_timeout=100ms&request_timeout=1m").unwrap(), expected);
        assert_eq!(read("").unwrap(), Timeouts::default());
        for query in ["connect_timeout=99ms", "request_timeout=61s"] {
            let error = read(query).unwrap_err().to_string();
            assert!(error.contains("100ms to 1m"), "{error}");
        }
    }
}
